"""What counts of hardware events are worth: each event ends as counted, as free with a reason, or as unknown with its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from flopwatch.errors import CannotMeasureError
from flopwatch.events import Reading
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.pmu import PmuRow, PmuTable
from flopwatch.flops.tally import Count, Key, Tally
from flopwatch.scope import Scope

MOVING = 0.01  # of the time, while threads move between kinds of cores


@dataclass(frozen=True, slots=True)
class ClassifiedReadings:
    """What readings are worth.

    `unknown` has the counts of events that the table has no row for, or no worth; `free` the events without FLOP, each with
    its reason; `partial` sentences about what was seen but not counted, or is doubtful; `counted` names the rows that count.
    """

    tally: Tally = field(default_factory=Tally)
    by_scope: Mapping[Scope, Tally] = field(default_factory=dict, hash=False)
    unknown: Mapping[str, int] = field(default_factory=dict, hash=False)
    free: Mapping[str, str] = field(default_factory=dict, hash=False)
    partial: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()


def classify_readings(
    readings: Iterable[Reading], table: PmuTable, *, vector_bits: int | None = None, hybrid: bool = False
) -> ClassifiedReadings:
    """The worth of readings of one kind of core; `vector_bits` is the length of SVE vectors, if it is not the core's own.

    Counts of an event in the same scope add up. An event that includes others which were read as well gives only what
    these leave over. CannotMeasureError for a counter that was shared: counts are never scaled. With `hybrid`, the caller
    sees to that (`check_kinds`), since each kind of core counts while a thread runs on it, and only then.
    """
    by_scope: dict[Scope, _Scope] = {}
    for reading in readings:
        if not hybrid:
            check_not_shared(reading)
        by_scope.setdefault(reading.scope, _Scope(table, vector_bits or table.vector_bits)).add(reading)
    tallies = {scope: found.tally() for scope, found in by_scope.items()}
    unknown: dict[str, int] = {}
    free: dict[str, str] = {}
    partial: dict[str, None] = {}
    counted: dict[str, None] = {}
    for found in by_scope.values():
        for name, count in found.unknown.items():
            unknown[name] = unknown.get(name, 0) + count
        free |= found.free
        partial |= dict.fromkeys(found.partial)
        counted |= dict.fromkeys(found.counted)
    return ClassifiedReadings(Tally.total(tallies.values()), tallies, unknown, free, tuple(partial), tuple(counted))


def check_not_shared(reading: Reading) -> None:
    """Raise CannotMeasureError if an event was not counted all the time."""
    if reading.running < reading.enabled:
        raise CannotMeasureError(
            f"{reading.name} was counted for a part of the time only, because its counter was shared.",
            seen=f"It ran for {reading.running / reading.enabled:.2%} of the time; the rest would be a guess.",
            todo="Count fewer events at once, in several runs if need be.",
        )


def check_kinds(kinds: Iterable[Iterable[Reading]]) -> None:
    """Raise CannotMeasureError unless the readings of all kinds of cores together were counted all the time.

    Within a kind every event has to run as long as the others, and the times of the kinds have to add up to the time
    enabled, but for the moments in which a thread moves from one kind to another.
    """
    groups = [list(kind) for kind in kinds]
    total = enabled = 0
    for readings in groups:
        longest = max((reading.running for reading in readings), default=0)
        for reading in readings:
            if reading.running < longest:
                check_not_shared(replace(reading, enabled=longest))
        total += longest
        enabled = max([enabled, *(reading.enabled for reading in readings)])
    if total < enabled * (1 - MOVING):
        first = next(reading for readings in groups for reading in readings)
        check_not_shared(replace(first, enabled=enabled, running=total))


def weight(row: PmuRow, vector_bits: int | None) -> int | None:
    """FLOP per count of an event with vectors of so many bits; None for one whose worth is not known, or that has none.

    Raises CannotMeasureError if the length of the vectors matters and is not known.
    """
    if row.weight is None or row.per_bits is None:
        return row.weight
    if vector_bits is None:
        raise CannotMeasureError(
            f"{row.name} counts for each {row.per_bits} bits of a vector, and the length of the vectors is not known."
        )
    return row.weight * vector_bits // row.per_bits


class _Scope:
    """The readings of one scope, by row."""

    def __init__(self, table: PmuTable, vector_bits: int | None) -> None:
        self._table = table
        self._vector_bits = vector_bits
        self._counts: dict[str, int] = {}
        self.unknown: dict[str, int] = {}
        self.free: dict[str, str] = {}
        self.partial: list[str] = []
        self.counted: list[str] = []

    def add(self, reading: Reading) -> None:
        row = self._table.find(reading.name, reading.code)
        if row is None:
            if reading.count:
                self._unknown(reading.name, reading.count)
        elif row.name_trap and not reading.code:
            self._unknown(row.name, reading.count)
            self.partial.append(f"{row.name}: {row.name_trap}")
        else:
            self._counts[row.name] = self._counts.get(row.name, 0) + reading.count

    def tally(self) -> Tally:
        """The operations of this scope; fills in what else was found."""
        found: list[Tally] = []
        for name, count in self._counts.items():
            row = self._table.by_name[name.lower()]
            if row.free:
                self.free[name] = row.free
            elif row.warns:
                self.free[name] = row.warns
                if count:
                    self.partial.append(f"{row.warns} ({name}: {count:,})")
            elif self._covered(row):
                self.free[name] = f"counted in {', '.join(row.includes)} already"
            elif row.weight is not None:
                self.counted.append(name)
                found.append(self._counted(row, count))
            elif not count:
                self.counted.append(name)
            elif (worth := self._when_zero(row)) is not None:
                self.counted.append(name)
                found.append(Tally({Key(Operation.ANY, worth[0]): Count(count * worth[1])}))
            else:
                self._unknown(name, count)
        return Tally.total(found)

    def _covered(self, row: PmuRow) -> bool:
        """Whether all that an event counts was read as the events that it includes."""
        return bool(row.includes) and all(name in self._read() for name in row.includes)

    def _read(self) -> set[str]:
        """The events that were read, and those whose parts were read."""
        read = set(self._counts)
        grown = True
        while grown:
            more = {row.name for row in self._table.rows if row.includes and read.issuperset(row.includes)} - read
            read |= more
            grown = bool(more)
        return read

    def _parts(self, row: PmuRow) -> list[PmuRow]:
        """The included events that were read, at any depth, none of them twice."""
        parts: dict[str, PmuRow] = {}
        for name in row.includes:
            part = self._table.by_name[name.lower()]
            if name in self._counts:
                parts[name] = part
            else:
                parts |= {each.name: each for each in self._parts(part)}
        return list(parts.values())

    def _counted(self, row: PmuRow, count: int) -> Tally:
        assert row.weight is not None
        flop = count * self._weight(row)
        parts = self._parts(row)
        rest = flop - sum(self._counts[part.name] * self._weight(part) for part in parts)
        if rest < 0:
            self.partial.append(
                f"{row.name} counted less ({flop:,} FLOP) than the events it includes ({flop - rest:,} FLOP)"
            )
            return Tally()
        operation, dtype = row.operation or Operation.ANY, row.dtype or DType.ANY
        if row.lanes is not None and rest % self._weight(row) == 0:
            return Tally({Key(operation, dtype, row.lanes): Count(rest // self._weight(row))})
        return Tally({Key(Operation.ANY, dtype): Count(rest)})

    def _weight(self, row: PmuRow) -> int:
        return weight(row, self._vector_bits) or 0

    def _when_zero(self, row: PmuRow) -> tuple[DType, int] | None:
        for case in row.when_zero:
            if self._counts.get(case.event) == 0:
                return case.dtype, case.weight
        return None

    def _unknown(self, name: str, count: int) -> None:
        self.unknown[name] = self.unknown.get(name, 0) + count
