"""The record itself, with the figures that are made from it under its convention."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from flopwatch.attribution import AXES, Row, Where, by
from flopwatch.errors import UsageError
from flopwatch.flops.convention import CONVENTIONS, Convention, Lanes
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.record.parts import Calls, Cell, EventCount, Layer, Memory, Process, Repeat, Unknown, tally_of

# 1  first
SCHEMA = 1


class Record(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A measurement. Stored are operations; FLOP figures are made from them under a named convention.

    `partial` says what is missing, `hidden` names instruction sets hidden from the program, `vector_instructions` is
    how many ran in all, `events` what hardware counted. `seconds` is the median of `timed_seconds`, wall times of
    uninstrumented runs; None without any. `layers`, in the model's order, are those that the layer axis names.

    A record with the counter "estimate" holds what formulas say that a model needs; a measured one can have it as `estimate`.
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
    layers: tuple[Layer, ...] = ()
    calls: Calls | None = None
    memory: Memory | None = None
    estimate: Record | None = None
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
        """The share of the executed vector instructions, or of the operator calls of an estimate, whose worth is known, from 0 to 1."""
        if self.calls is not None:
            every = self.calls.counted + self.calls.free + self.calls.unknown
            return 1 - self.calls.unknown / every if every else 1.0
        unknown = sum(each.count for each in self.unknown)
        return max(0.0, 1 - unknown / self.vector_instructions) if self.vector_instructions else float(not unknown)

    @cached_property
    def mac(self) -> int:
        """Multiply-accumulates of an estimate; 0 in a measured record, where they are not told from other operations."""
        return sum(cell.mac for cell in self.cells)

    @property
    def params(self) -> int:
        """Parameters of the whole model, shared ones once."""
        return sum(layer.params for layer in self.layers)

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
        estimate = None if self.estimate is None else self.estimate.under(convention=convention, lanes=lanes)
        return msgspec.structs.replace(
            self, convention=convention or self.convention, lanes=lanes or kept, estimate=estimate
        )
