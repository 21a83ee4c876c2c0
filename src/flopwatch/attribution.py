"""Fold what ran into cells, one for each place that can be told apart, and cells into rows along one axis.

Blocks come in, tallies go out; the sums are checked on every axis, so that no operation is lost or counted twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from iced_x86 import Code, Decoder, Formatter, FormatterSyntax, Instruction, OpKind

from flopwatch.counters import ProcessImage
from flopwatch.events import Block
from flopwatch.flops.classify import classify_block
from flopwatch.flops.tally import Tally
from flopwatch.symbols import Place, Symbols


class Where(NamedTuple):
    """All axes on which work can be told apart; an empty field means that the place is not known on that axis."""

    process: str = ""
    thread: str = ""
    library: str = ""
    symbol: str = ""
    instruction: str = ""
    layer: str = ""
    op: str = ""
    function: str = ""


AXES = Where._fields
NOWHERE = {axis: f"[no {axis}]" for axis in AXES}
_FORMATTER = Formatter(FormatterSyntax.INTEL)
_WIDEST_FIRST = ("tmm", "zmm", "ymm", "xmm", "mm", "st", "k")
_VECTOR_REGISTER = re.compile("|".join(_WIDEST_FIRST))


@dataclass(frozen=True, slots=True)
class Folded:
    """What ran, by place: a tally for each; vector instructions executed in all; unknown ones by name with their runs."""

    cells: Mapping[Where, Tally]
    vector_instructions: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One name on an axis, with its work."""

    name: str
    tally: Tally


def fold(blocks: Iterable[Block], resolve: Callable[[int], Place] | None = None) -> Folded:
    """Classify each instruction of each block and add it to its place.

    `resolve` gives the library and the symbol of an address where a block does not name them itself.
    """
    pieces: dict[Where, list[Tally]] = {}
    unknown: Counter[str] = Counter()
    vector_instructions = 0
    for block in blocks:
        if not block.runs:
            continue
        library, symbol = block.library, block.symbol
        if resolve is not None and not (library and symbol):
            place = resolve(block.address)
            library, symbol = library or place.library, symbol or place.symbol
        active = dict(block.active)
        scope = block.scope
        for offset, code, name in instructions(block.code):
            single = replace(block, code=code, active=((0, active[offset]),) if offset in active else ())
            classified = classify_block(single)
            vector_instructions += classified.vector_instructions
            unknown.update(classified.unknown)
            if classified.tally:
                where = Where(scope.process, scope.thread, library, symbol, name, scope.layer, scope.op, scope.function)
                pieces.setdefault(where, []).append(classified.tally)
    cells = {where: Tally.total(tallies) for where, tallies in pieces.items()}
    return Folded(cells, vector_instructions, dict(unknown))


def fold_processes(images: Iterable[ProcessImage], names: Iterable[str]) -> Folded:
    """Fold the images of a command's processes; `names` are their names on the process axis, in the same order."""
    folded = []
    for image, name in zip(images, names, strict=True):
        symbols = Symbols(image.regions, image.jit_map)
        threads = {str(thread.tid): f"{thread.tid} {thread.name}".strip() for thread in image.threads}
        blocks = (
            replace(
                block,
                scope=replace(block.scope, process=name, thread=threads.get(block.scope.thread, block.scope.thread)),
            )
            for block in image.blocks
        )
        folded.append(fold(blocks, symbols.resolve))
    return merged(folded)


def merged(parts: Iterable[Folded]) -> Folded:
    """Several foldings as one."""
    cells: dict[Where, Tally] = {}
    unknown: Counter[str] = Counter()
    vector_instructions = 0
    for part in parts:
        vector_instructions += part.vector_instructions
        unknown.update(part.unknown)
        for where, tally in part.cells.items():
            cells[where] = cells[where] + tally if where in cells else tally
    return Folded(cells, vector_instructions, dict(unknown))


def by(cells: Mapping[Where, Tally], axis: str, names: Iterable[str] = ()) -> tuple[Row, ...]:
    """The rows of one axis, most work first; `names` get a row even without any work.

    Raises AssertionError if the rows do not sum to the total, and ValueError for an axis that does not exist.
    """
    if axis not in AXES:
        raise ValueError(f"no axis is named {axis!r}")
    index = AXES.index(axis)
    groups: dict[str, list[Tally]] = {name: [] for name in names}
    for where, tally in cells.items():
        groups.setdefault(where[index] or NOWHERE[axis], []).append(tally)
    rows = [Row(name, Tally.total(tallies)) for name, tallies in groups.items()]
    check_sum(rows, Tally.total(cells.values()), axis)
    return tuple(sorted(rows, key=lambda row: (-_work(row.tally), row.name)))


def check_sum(rows: Iterable[Row], total: Tally, axis: str) -> None:
    """Raise AssertionError unless the rows of an axis sum to the total, key by key."""
    if Tally.total(row.tally for row in rows) != total:
        raise AssertionError(f"the rows by {axis} do not sum to the total")


def _work(tally: Tally) -> int:
    return sum(tally.flop().values()) + sum(tally.op().values())


@lru_cache(maxsize=1 << 16)
def instructions(code: bytes) -> tuple[tuple[int, bytes, str], ...]:
    """The instructions of a block: byte offset, bytes, and a short name ("vfmadd231ps zmm", "vaddps zmm{k}")."""
    found = []
    for instruction in Decoder(64, code):
        start = instruction.ip
        if instruction.code == Code.INVALID:
            # Where the next instruction begins is anybody's guess, so the rest of the block stays in one piece.
            found.append((start, code[start:], "[cannot be decoded]"))
            break
        found.append((start, code[start : start + instruction.len], _name(instruction)))
    return tuple(found)


def _name(instruction: Instruction) -> str:
    names = [
        _FORMATTER.format_register(instruction.op_register(index))
        for index in range(instruction.op_count)
        if instruction.op_kind(index) == OpKind.REGISTER
    ]
    classes = {found.group() for name in names if (found := _VECTOR_REGISTER.match(name))}
    widest = next((name for name in _WIDEST_FIRST if name in classes), "")
    mask = "{k}" if instruction.has_op_mask else ""
    return f"{_FORMATTER.format_mnemonic(instruction)} {widest}{mask}".strip()
