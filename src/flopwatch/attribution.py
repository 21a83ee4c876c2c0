"""Fold what ran into cells, one for each place that can be told apart, and cells into rows along one axis.

Blocks come in, tallies go out; the sums are checked on every axis, so that no operation is lost or counted twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flopwatch.counters import KindReadings, ProcessImage
from flopwatch.events import Block
from flopwatch.flops.classify import classify_block
from flopwatch.flops.operations import DType
from flopwatch.flops.readings import classify_readings
from flopwatch.flops.tally import Key, Tally
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
    span: str = ""


AXES = Where._fields
NOWHERE = {axis: f"[no {axis}]" for axis in AXES}
REGISTERS = {"512": "zmm", "256": "ymm", "tile": "tmm"}


@dataclass(frozen=True, slots=True)
class Folded:
    """What ran, by place: a tally for each; vector instructions executed in all; unknown ones by name with their runs.

    `partial` are sentences about what events saw but did not count.
    """

    cells: Mapping[Where, Tally]
    vector_instructions: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    partial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One name on an axis, with its work."""

    name: str
    tally: Tally


def fold(
    blocks: Iterable[Block],
    resolve: Callable[[int], Place] | None = None,
    *,
    process: str = "",
    threads: Mapping[str, str] | None = None,
) -> Folded:
    """Classify each block and add each of its instructions to its place.

    `resolve` gives the library and the symbol of an address where a block does not name them itself; `process` and
    `threads` give the process and its threads other names than the blocks do.
    """
    pieces: dict[Where, list[Tally]] = {}
    unknown: Counter[str] = Counter()
    vector_instructions = 0
    for block in blocks:
        if not block.runs:
            continue
        classified = classify_block(block, by_instruction=True)
        vector_instructions += classified.vector_instructions
        unknown.update(classified.unknown)
        if not classified.by_instruction:
            continue
        library, symbol, scope = block.library, block.symbol, block.scope
        if resolve is not None and not (library and symbol):
            place = resolve(block.address)
            library, symbol = library or place.library, symbol or place.symbol
        thread = threads.get(scope.thread, scope.thread) if threads else scope.thread
        for mnemonic, tally in classified.by_instruction.items():
            for key, count in tally.items():
                where = Where(
                    process or scope.process,
                    thread,
                    library,
                    symbol,
                    instruction_name(mnemonic, key),
                    scope.layer,
                    scope.op,
                    scope.function,
                    scope.span,
                )
                pieces.setdefault(where, []).append(Tally({key: count}))
    cells = {where: Tally.total(tallies) for where, tallies in pieces.items()}
    return Folded(cells, vector_instructions, dict(unknown))


def fold_readings(
    kinds: Iterable[KindReadings], *, process: str = "", threads: Mapping[str, str] | None = None
) -> Folded:
    """Weigh the readings of each kind of core by its own table, and add them to their places.

    `process` and `threads` as in `fold`. Events do not say which instruction it was, nor where it stood.
    """
    pieces: dict[Where, list[Tally]] = {}
    unknown: Counter[str] = Counter()
    partial: dict[str, None] = {}
    for kind in kinds:
        classified = classify_readings(kind.readings, kind.table, vector_bits=kind.vector_bits)
        unknown.update(classified.unknown)
        partial |= dict.fromkeys(classified.partial)
        for scope, tally in classified.by_scope.items():
            if not tally:
                continue
            thread = threads.get(scope.thread, scope.thread) if threads else scope.thread
            where = Where(
                process=process or scope.process,
                thread=thread,
                layer=scope.layer,
                op=scope.op,
                function=scope.function,
                span=scope.span,
            )
            pieces.setdefault(where, []).append(tally)
    cells = {where: Tally.total(tallies) for where, tallies in pieces.items()}
    return Folded(cells, 0, dict(unknown), tuple(partial))


def instruction_name(mnemonic: str, key: Key) -> str:
    """A mnemonic with the registers that it works on, and a sign for a mask: "vfmadd231ps zmm", "vaddps ymm{k}"."""
    register = "st" if key.dtype is DType.X87 else REGISTERS.get(key.width, "xmm")
    return f"{mnemonic} {register}{'{k}' if key.masked else ''}"


def fold_processes(images: Iterable[ProcessImage], names: Iterable[str]) -> Folded:
    """Fold the images of a command's processes; `names` are their names on the process axis, in the same order."""
    folded = []
    for image, name in zip(images, names, strict=True):
        symbols = Symbols(image.regions, image.jit_map)
        threads = {str(thread.tid): f"{thread.tid} {thread.name}".strip() for thread in image.threads}
        folded.append(fold(image.blocks, symbols.resolve, process=name, threads=threads))
        folded.append(fold_readings(image.readings, process=name, threads=threads))
    return merged(folded)


def merged(parts: Iterable[Folded]) -> Folded:
    """Several foldings as one."""
    cells: dict[Where, Tally] = {}
    unknown: Counter[str] = Counter()
    vector_instructions = 0
    partial: dict[str, None] = {}
    for part in parts:
        partial |= dict.fromkeys(part.partial)
        vector_instructions += part.vector_instructions
        unknown.update(part.unknown)
        for where, tally in part.cells.items():
            cells[where] = cells[where] + tally if where in cells else tally
    return Folded(cells, vector_instructions, dict(unknown), tuple(partial))


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
