"""One finished measurement: immutable, versioned, saved as JSON; every report can be made again from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from flopwatch.attribution import AXES, Row, Where, by
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops.convention import CONVENTIONS, Convention, Lanes
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Count, Key, Tally

# 1  first
SCHEMA = 1


class Ops(msgspec.Struct, frozen=True):
    """Executed instructions of one kind; `active_lanes` is None without a mask or where masks were not recorded."""

    operation: str
    dtype: str
    lanes: int
    masked: bool
    count: int
    active_lanes: int | None = None


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """The operations of one place, on all axes; an empty axis is not known."""

    operations: tuple[Ops, ...]
    process: str = ""
    thread: str = ""
    library: str = ""
    symbol: str = ""
    instruction: str = ""
    layer: str = ""
    op: str = ""
    function: str = ""
    span: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """A kind of instruction that nobody knows the worth of, and how often it ran."""

    name: str
    count: int


class EventCount(msgspec.Struct, frozen=True):
    """A hardware event that was counted: its raw code in hexadecimal ("" for one of the kernel's own), and its FLOP per count."""

    name: str
    code: str
    count: int
    weight: int | None = None
    cores: str = ""


class Process(msgspec.Struct, frozen=True):
    """One program image of one process; `name` is its name on the process axis, `how` how it came to be."""

    name: str
    pid: int
    parent: int = 0
    command: tuple[str, ...] = ()
    how: str = ""
    complete: bool = True
    partial: tuple[str, ...] = ()
    threads: int = 0


class Repeat(msgspec.Struct, frozen=True):
    """One of several runs: FLOP by datatype under the record's convention, and whether it was complete."""

    flop: dict[str, int]
    complete: bool = True


class Record(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A measurement. Stored are operations; FLOP figures are made from them under a named convention.

    `partial` says what is missing, `hidden` names instruction sets hidden from the program, `vector_instructions` is
    how many ran in all, `events` what hardware counted. `seconds` is the median of `timed_seconds`, wall times of
    uninstrumented runs; None without any.
    """

    schema: int = SCHEMA
    counter: str
    command: tuple[str, ...] = ()
    subject: str = "command"
    convention: str = "pmu"
    lanes: str | None = None
    complete: bool = True
    partial: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int = 0
    signal: int = 0
    seconds: float | None = None
    timed_seconds: tuple[float, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    processes: tuple[Process, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    events: tuple[EventCount, ...] = ()
    vector_instructions: int = 0
    machine: dict[str, str] = {}
    versions: dict[str, str] = {}
    cells: tuple[Cell, ...]

    @cached_property
    def by_place(self) -> Mapping[Where, Tally]:
        """The tally of each place."""
        return {Where(*(getattr(cell, axis) for axis in AXES)): tally_of(cell.operations) for cell in self.cells}

    @cached_property
    def tally(self) -> Tally:
        """All operations."""
        return Tally.total(self.by_place.values())

    @property
    def coverage(self) -> float:
        """The share of the executed vector instructions whose worth is known, from 0 to 1."""
        unknown = sum(each.count for each in self.unknown)
        return max(0.0, 1 - unknown / self.vector_instructions) if self.vector_instructions else float(not unknown)

    @property
    def weighed(self) -> bool:
        """Whether hardware counted operations without telling them apart, so that they are weighed by its rule for good."""
        return any(key.operation is Operation.ANY for key in self.tally)

    @property
    def rule(self) -> Convention:
        """The convention that this record's FLOP figures are under."""
        return CONVENTIONS[self.convention]

    @property
    def counted_lanes(self) -> Lanes:
        """Whether the figures count all lanes of masked instructions or the switched-on ones only."""
        lanes = self.lanes or self.rule.lanes
        return "active" if lanes == "active" else "full"

    def flop(self, tally: Tally | None = None) -> dict[DType, int]:
        """FLOP by datatype of a tally (default: of everything) under the record's convention."""
        return (self.tally if tally is None else tally).flop(self.rule, self.counted_lanes)

    def op(self, tally: Tally | None = None) -> dict[DType, int]:
        """Integer OP by datatype of a tally (default: of everything)."""
        return (self.tally if tally is None else tally).op(self.rule, self.counted_lanes)

    def rows(self, axis: str) -> tuple[Row, ...]:
        """The rows of one axis; each process has a row, even one without any work."""
        return by(self.by_place, axis, [process.name for process in self.processes] if axis == "process" else ())

    def under(self, *, convention: str | None = None, lanes: str | None = None) -> Record:
        """The same measurement under another convention or counting of lanes; a convention brings its own lanes.

        Raises UsageError where hardware weighed the operations already, by a rule of its own.
        """
        if convention is None and lanes is None:
            return self
        if self.weighed and (convention not in (None, "pmu") or lanes == "active"):
            raise UsageError(
                "What hardware counted cannot be weighed by another rule.",
                seen="It tells neither minima and approximations nor switched-off lanes apart.",
                todo="Leave --convention and --lanes out, or count with --counter instrumented.",
            )
        kept = self.lanes if convention is None else None
        return msgspec.structs.replace(self, convention=convention or self.convention, lanes=lanes or kept)


def ops_of(tally: Tally) -> tuple[Ops, ...]:
    """A tally as it is stored."""
    return tuple(
        Ops(str(key.operation), str(key.dtype), key.lanes, key.masked, count.instructions, count.active_lanes)
        for key, count in tally.rows()
    )


def tally_of(operations: tuple[Ops, ...]) -> Tally:
    """A stored tally, read back; raises ValueError for operations or datatypes that do not exist."""
    return Tally(
        {
            Key(Operation(each.operation), DType(each.dtype), each.lanes, each.masked): Count(
                each.count, each.active_lanes
            )
            for each in operations
        }
    )


def cells_of(places: Mapping[Where, Tally]) -> tuple[Cell, ...]:
    """Tallies by place as they are stored."""
    return tuple(Cell(ops_of(tally), *where) for where, tally in sorted(places.items()))


def document(record: Record, by: str | None = None) -> dict[str, Any]:
    """The record with all figures that are derived from it, as JSON types; `by` adds the rows of an axis.

    This is what `--json` prints and what a saved file holds; its keys are stable within one `schema`.
    """
    stored: dict[str, Any] = msgspec.to_builtins(record)
    cells = stored.pop("cells")
    derived: dict[str, Any] = {
        "lanes": record.counted_lanes,
        "flop": {str(dtype): count for dtype, count in record.flop().items()},
        "op": {str(dtype): count for dtype, count in record.op().items()},
        "operations": [_operation(record, each) for each in ops_of(record.tally)],
        "coverage": None if record.events else record.coverage,
    }
    if by is not None:
        derived |= {"by": by, "rows": [_row(record, row) for row in record.rows(by)]}
    return stored | derived | {"cells": cells}


def _operation(record: Record, each: Ops) -> dict[str, Any]:
    tally = tally_of((each,))
    stored: dict[str, Any] = msgspec.to_builtins(each)
    return stored | {"flop": sum(record.flop(tally).values()), "op": sum(record.op(tally).values())}


def _row(record: Record, row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "flop": {str(dtype): count for dtype, count in record.flop(row.tally).items()},
        "op": {str(dtype): count for dtype, count in record.op(row.tally).items()},
        "operations": [_operation(record, each) for each in ops_of(row.tally)],
    }


def encode(record: Record, by: str | None = None) -> bytes:
    """The record as JSON text, with the rows of an axis if `by` names one."""
    return msgspec.json.format(msgspec.json.encode(document(record, by)), indent=1) + b"\n"


def decode(data: bytes, name: str = "the record") -> Record:
    """Read a record from JSON text; raises UsageError if it is none, or was written by a later version."""
    try:
        schema = msgspec.json.decode(data, type=_Header).schema
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is not a flopwatch record.", seen=f"{error}.") from error
    if schema > SCHEMA:
        raise UsageError(
            f"{name} was written by a later flopwatch.",
            seen=f"Its schema is {schema}; this version reads up to {SCHEMA}.",
            todo="Upgrade flopwatch.",
        )
    try:
        record = msgspec.json.decode(data, type=Record)
        record.rule, record.tally  # noqa: B018 - damaged values are to be found here, not in a report
    except (msgspec.DecodeError, ValueError, KeyError) as error:
        raise UsageError(f"{name} is a damaged flopwatch record.", seen=f"{error}.") from error
    return record


class _Header(msgspec.Struct):
    schema: int


def load(path: str | Path) -> Record:
    """Read a saved record; raises UsageError if there is none at `path`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    return decode(data, repr(str(path)))


def save(record: Record, path: str | Path, by: str | None = None) -> None:
    """Save a record as JSON; raises CannotMeasureError if the file cannot be written."""
    try:
        Path(path).write_bytes(encode(record, by))
    except OSError as error:
        raise CannotMeasureError(f"The record could not be written to {str(path)!r}: {error.strerror}.") from error
