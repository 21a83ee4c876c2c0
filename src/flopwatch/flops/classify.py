"""What machine code is worth: each instruction ends as counted, as free with a reason, or as unknown with a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from iced_x86 import Code, Decoder, Register

from flopwatch.errors import CannotMeasureError
from flopwatch.events import Block
from flopwatch.flops import aarch64
from flopwatch.flops.forms import Form, Work, form_of
from flopwatch.flops.tally import Count, Key, Tally

_LONGEST_INSTRUCTION = 15


@dataclass(frozen=True, slots=True)
class Counted:
    """The instruction does the arithmetic in `tally`."""

    tally: Tally


@dataclass(frozen=True, slots=True)
class Free:
    """The instruction or operator does no arithmetic that is counted: a word says why.

    An operator that only looks at its data in another way (a view) `moves` none.
    """

    reason: str
    moves: bool = True


@dataclass(frozen=True, slots=True)
class Unknown:
    """The table has no row for the instruction (its mnemonic) or operator, or the decoder does not know it (its bytes in hex)."""

    name: str


def classify(
    code: bytes, address: int = 0, *, isa: str = "x86_64", scalable_bits: int = 128
) -> Counted | Free | Unknown:
    """The worth of the first instruction in `code`, run once; the mask of a masked form is not known here.

    `isa` and `scalable_bits` as in `Block`. ValueError if there are no bytes; CannotMeasureError for an architecture without a
    table, or without its decoder.
    """
    if not code:
        raise ValueError("no instruction to classify")
    _, form, masked = next(_instructions(code, isa, scalable_bits, address))
    if form.work is not None:
        return Counted(_tally(form.work, masked, runs=1, mask_bits=None))
    return Free(form.reason) if form.reason else Unknown(form.mnemonic)


@dataclass(frozen=True, slots=True)
class Classified:
    """What a block, or many blocks, did in all runs.

    `vector_instructions` counts executed instructions that work on vector, mask, tile, MMX or x87 registers, or that cannot
    be decoded; `unknown` says how often each of them ran that has no worth known. `by_instruction` (mnemonic -> tally) is empty
    unless it was asked for.
    """

    tally: Tally = field(default_factory=Tally)
    vector_instructions: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict, hash=False)
    by_instruction: Mapping[str, Tally] = field(default_factory=dict, hash=False)

    @property
    def classified(self) -> int:
        """Vector instructions executed that are counted or free."""
        return self.vector_instructions - sum(self.unknown.values())

    @property
    def coverage(self) -> float:
        """The classified share of the vector instructions, from 0 to 1; 1 if none ran."""
        return self.classified / self.vector_instructions if self.vector_instructions else 1.0

    @classmethod
    def total(cls, parts: Iterable[Classified]) -> Classified:
        """Everything that many blocks did, together."""
        tallies: list[Tally] = []
        vector_instructions = 0
        unknown: dict[str, int] = {}
        by_instruction: dict[str, list[Tally]] = {}
        for part in parts:
            tallies.append(part.tally)
            vector_instructions += part.vector_instructions
            for name, runs in part.unknown.items():
                unknown[name] = unknown.get(name, 0) + runs
            for mnemonic, tally in part.by_instruction.items():
                by_instruction.setdefault(mnemonic, []).append(tally)
        return cls(
            Tally.total(tallies),
            vector_instructions,
            unknown,
            {mnemonic: Tally.total(each) for mnemonic, each in by_instruction.items()},
        )


def classify_block(block: Block, *, by_instruction: bool = False) -> Classified:
    """What a block did in all its runs; each distinct string of bytes is decoded once.

    Lanes of a masked instruction are taken from `block.active`; without an entry there (or with one that cannot be, more lanes
    than the runs had) its mask counts as not recorded. CannotMeasureError for an architecture without a table, or without its
    decoder.
    """
    decoded = _decode(block.code, block.isa, block.scalable_bits)
    runs = block.runs
    unknown = {name: runs * times for name, times in decoded.unknown if runs}
    vector_instructions = decoded.vector_instructions * runs
    if not (by_instruction or block.active):
        return Classified(decoded.tally * runs, vector_instructions, unknown)
    active = dict(block.active)
    tallies = [(mnemonic, tally * runs) for mnemonic, tally in decoded.unmasked]
    tallies += [(each.mnemonic, _tally(each.work, True, runs, active.get(each.offset))) for each in decoded.masked]
    total = Tally.total(tally for _, tally in tallies)
    if not by_instruction:
        return Classified(total, vector_instructions, unknown)
    grouped: dict[str, list[Tally]] = {}
    for mnemonic, tally in tallies:
        grouped.setdefault(mnemonic, []).append(tally)
    breakdown = {mnemonic: Tally.total(each) for mnemonic, each in grouped.items()}
    return Classified(total, vector_instructions, unknown, breakdown)


class _Masked(NamedTuple):
    offset: int
    mnemonic: str
    work: Work


class _Decoded(NamedTuple):
    """A block's bytes, read: what one run of it does. `tally` has all of it, masks not recorded."""

    unmasked: tuple[tuple[str, Tally], ...]
    masked: tuple[_Masked, ...]
    tally: Tally
    vector_instructions: int
    unknown: tuple[tuple[str, int], ...]


@lru_cache(maxsize=1 << 17)
def _decode(code: bytes, isa: str, scalable_bits: int) -> _Decoded:
    # Unrolled kernels have blocks of hundreds of instructions of two or three kinds: equal ones are one entry.
    equal: dict[tuple[str, Work], int] = {}
    masked: list[_Masked] = []
    unknown: dict[str, int] = {}
    vector_instructions = 0
    for offset, form, has_mask in _instructions(code, isa, scalable_bits):
        if form.work is None:
            if not form.reason:
                unknown[form.mnemonic] = unknown.get(form.mnemonic, 0) + 1
        elif has_mask:
            masked.append(_Masked(offset, form.mnemonic, form.work))
        else:
            kind = form.mnemonic, form.work
            equal[kind] = equal.get(kind, 0) + 1
        vector_instructions += form.vector
    unmasked = tuple((name, _tally(work, False, times, None)) for (name, work), times in equal.items())
    whole = [tally for _, tally in unmasked] + [_tally(each.work, True, 1, None) for each in masked]
    return _Decoded(unmasked, tuple(masked), Tally.total(whole), vector_instructions, tuple(unknown.items()))


def _instructions(code: bytes, isa: str, scalable_bits: int, address: int = 0) -> Iterator[tuple[int, Form, bool]]:
    """Byte offset of each instruction, what it does, and whether a mask switches its lanes."""
    if isa == "x86_64":
        return _x86_64(code, address)
    if isa == "aarch64":
        return aarch64.instructions(code, scalable_bits)
    raise CannotMeasureError("The instructions of a block cannot be read.", seen=f"Its architecture is {isa!r}.")


def _x86_64(code: bytes, address: int) -> Iterator[tuple[int, Form, bool]]:
    offset = 0
    for instruction in Decoder(64, code, ip=address):
        if instruction.code == Code.INVALID:
            # Where the next instruction begins is anybody's guess, so the rest of the block is one unknown.
            yield offset, Form(code[offset:][:_LONGEST_INSTRUCTION].hex(" "), vector=True), False
            return
        form = form_of(instruction.code)
        yield offset, form, form.work is not None and instruction.op_mask != Register.NONE
        offset += instruction.len


def _tally(work: Work, masked: bool, runs: int, mask_bits: int | None) -> Tally:
    instructions = work.times * runs
    active_lanes = None
    if mask_bits is not None:
        active_lanes = mask_bits * work.lanes_per_mask_bit * work.times
        if not 0 <= active_lanes <= work.lanes * instructions:
            active_lanes = None
    return Tally({Key(work.operation, work.dtype, work.lanes, masked): Count(instructions, active_lanes)})
