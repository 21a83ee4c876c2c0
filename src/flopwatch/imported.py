"""A record from counts that another program made: its file, the tables of the processor it ran on, the worth of its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from flopwatch import formats, processors
from flopwatch.attribution import Where
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType
from flopwatch.flops.readings import ClassifiedReadings, check_not_shared, classify_readings, weight
from flopwatch.flops.tally import Tally
from flopwatch.formats.perf import Counted
from flopwatch.processors import Kind, Processor
from flopwatch.record import EventCount, Record, Unknown, cells_of

# What perf counts besides, by its own names: none of it is floating-point work.
NO_FLOP = """
    duration_time user_time system_time task-clock cpu-clock page-faults faults minor-faults major-faults context-switches cs
    cpu-migrations migrations alignment-faults emulation-faults bpf-output cgroup-switches dummy cycles cpu-cycles ref-cycles
    bus-cycles instructions branches branch-instructions branch-misses cache-references cache-misses slots idle-cycles-frontend
    idle-cycles-backend stalled-cycles-frontend stalled-cycles-backend branch-loads branch-load-misses
"""
NO_FLOP_FAMILIES = ("l1-", "llc-", "dtlb-", "itlb-", "node-", "topdown", "tma_", "mem-")
SECONDS_PER_UNIT = {"": 1e-9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0}


def read_counts(path: str | Path, *, format: str, cpu: str) -> Record:
    """The record of a file that another program wrote about a run on the processor `cpu` (a microarchitecture by name).

    Raises UsageError for a file, a format or a processor that does not exist; CannotMeasureError for a processor that
    cannot count FLOP, events without any, and counts that are guesses because counters were shared.
    """
    if format not in formats.NAMES:
        raise UsageError(f"There is no format named {format!r}.", todo=f"Choose one of: {', '.join(formats.NAMES)}.")
    processor = processors.find(cpu)
    counted: tuple[Counted, ...] = import_module(f"flopwatch.formats.{format}").read(path)
    return record_of(counted, processor, source=f"{path} (written by {format})")


def record_of(counted: Sequence[Counted], processor: Processor, *, source: str) -> Record:
    """The record of events counted on a processor."""
    events = [each for each in counted if not _no_flop(each.reading.name)]
    groups = _by_kind(events, processor)
    parts: list[tuple[pmu.PmuTable, ClassifiedReadings]] = []
    partial: list[str] = []
    for kind, lines in groups:
        table = pmu.table(kind.microarchitecture) if not processor.hybrid else pmu.load(kind.microarchitecture)
        if table.can == "no":
            partial.append(f"cores of the kind {table.title} cannot count FLOP: {table.because}")
            continue
        partial += _missing(lines, table)
        present = [each.reading for each in lines if not each.missing]
        # Whether counters were shared was looked at above, for the events that matter.
        parts.append((table, classify_readings(present, table, hybrid=True)))
    partial += [reason for _, classified in parts for reason in classified.partial]
    if not any(classified.counted for _, classified in parts):
        raise CannotMeasureError(
            f"None of the events counts FLOP on {processor.name}.",
            seen=" ".join((_seen(counted), *(f"{reason[0].upper()}{reason[1:]}." for reason in partial))),
            todo=_advice(processor),
        )
    if not any(classified.tally for _, classified in parts):
        partial.append(
            "every FLOP event counted 0: nothing was computed, or that machine shows counters that do not count"
        )
    tally: dict[Where, Tally] = {}
    unknown: dict[str, int] = {}
    for _, classified in parts:
        for scope, each in classified.by_scope.items():
            where = Where(thread=scope.thread)
            tally[where] = tally.get(where, Tally()) + each
        for name, count in classified.unknown.items():
            unknown[name] = unknown.get(name, 0) + count
    return Record(
        counter="hardware",
        subject=f"counts from {source}",
        complete=not partial,
        partial=tuple(dict.fromkeys(partial)),
        notes=(*_left_out(parts), *_notes(counted, [table for table, _ in parts])),
        seconds=_seconds(counted),
        unknown=tuple(
            Unknown(name, count) for name, count in sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
        ),
        machine={"processor": processor.name},
        events=_events(events, groups),
        cells=cells_of(tally),
    )


def _events(events: Iterable[Counted], groups: Sequence[tuple[Kind, list[Counted]]]) -> tuple[EventCount, ...]:
    """The events with their counts; those of several threads, processors or intervals are summed."""
    found: dict[tuple[str, str, str], EventCount] = {}
    for each in events:
        if not each.missing:
            event = _event(each, groups)
            key = (event.name, event.code, event.cores)
            before = found[key].count if key in found else 0
            found[key] = msgspec.structs.replace(event, count=before + event.count)
    return tuple(found.values())


def _event(counted: Counted, groups: Sequence[tuple[Kind, list[Counted]]]) -> EventCount:
    """An event as the record names it: as the maker does, if its row is known."""
    table = next(pmu.load(kind.microarchitecture) for kind, lines in groups if counted in lines)
    cores = table.title if len(groups) > 1 else ""
    row = table.find(counted.reading.name, counted.reading.code)
    if row is None:
        code = counted.reading.code
        return EventCount(counted.reading.name, f"{code:x}" if code else "", counted.reading.count, None, cores)
    return EventCount(row.name, f"{row.code:x}", counted.reading.count, weight(row, table.vector_bits), cores)


def _by_kind(events: Iterable[Counted], processor: Processor) -> list[tuple[Kind, list[Counted]]]:
    """The events of each kind of core that has any."""
    groups: dict[str, tuple[Kind, list[Counted]]] = {}
    for event in events:
        kind = processor.kinds[0]
        if processor.hybrid:
            named = [each for each in processor.kinds if each.pmu == event.pmu]
            if not named:
                raise UsageError(
                    f"The event {event.reading.name} does not say which kind of core it was counted on.",
                    seen=f"{processor.name} has several.",
                    todo=f"Name one kind with --cpu: {', '.join(each.microarchitecture for each in processor.kinds)}.",
                )
            kind = named[0]
        groups.setdefault(kind.pmu, (kind, []))[1].append(event)
    return list(groups.values())


def _missing(lines: Sequence[Counted], table: pmu.PmuTable) -> list[str]:
    """Sentences about events without a count; raises CannotMeasureError for counts that perf scaled."""
    found = []
    for each in lines:
        row = table.find(each.reading.name, each.reading.code)
        if row is not None and row.free:
            continue
        if each.missing:
            found.append(f"{each.reading.name}: {each.missing.strip('<>')} on that machine")
        elif row is not None and each.running < 1:
            check_not_shared(each.reading)
            raise CannotMeasureError(
                f"{each.reading.name} was counted for {each.running:.2%} of the time only; perf scaled it up, which is a guess.",
                todo="Count fewer events at once, in several runs if need be.",
            )
    return found


def _no_flop(name: str) -> bool:
    return name.lower() in NO_FLOP.split() or name.lower().startswith(NO_FLOP_FAMILIES)


def _left_out(parts: Sequence[tuple[pmu.PmuTable, ClassifiedReadings]]) -> list[str]:
    """Sentences about datatypes that there are events for, of which none was counted."""
    found = []
    for table, classified in parts:
        had = table.leaves(table.by_name[name.lower()] for name in classified.counted)
        names = [
            str(dtype) for dtype, rows in table.sets.items() if dtype is not DType.ANY and not table.leaves(rows) & had
        ]
        if names:
            found.append(f"not in it: {', '.join(names)}, whose events were not counted")
    return found


def _notes(counted: Sequence[Counted], tables: Sequence[pmu.PmuTable]) -> tuple[str, ...]:
    notes = []
    for table in tables:
        notes.append(f"{table.title} counts: {table.counts}")
        if table.because:
            notes.append(table.because)
        notes += table.overcounts
        notes += table.cannot
    spread = max((each.spread for each in counted if each.spread is not None), default=None)
    if spread is not None:
        notes.append(f"the counts are means of several runs, with standard deviations of up to {spread:.2%}")
    return tuple(dict.fromkeys(notes))


def _seconds(counted: Iterable[Counted]) -> float | None:
    """The wall time, if it was among the counts: the sum of all intervals."""
    times = [
        each.reading.count * SECONDS_PER_UNIT.get(each.unit, 1e-9)
        for each in counted
        if each.reading.name.lower() == "duration_time" and not each.missing
    ]
    return sum(times) if times else None


def _seen(counted: Sequence[Counted]) -> str:
    names = [each.reading.name + (f" {each.missing}" if each.missing else "") for each in counted]
    return f"There are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}."


def _advice(processor: Processor) -> str:
    table = pmu.load(processor.kinds[0].microarchitecture)
    rows = table.whole()
    codes = ",".join(f"r{row.code:04x}" for row in rows)
    return f"Its FLOP events are: perf stat -x, -e {codes} (for the total)." if rows else ""
