"""Which events to count, and how many of them at once: from the tables of this processor, or as named on the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from flopwatch.counters import RawEvent
from flopwatch.counters.hardware.opening import Event
from flopwatch.counters.hardware.perf_event import TYPE_RAW, TYPE_SOFTWARE
from flopwatch.counters.hardware.software import SOFTWARE
from flopwatch.counters.hardware.surroundings import Pmu
from flopwatch.errors import CannotMeasureError
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.pmu import Budget, PmuRow, PmuTable

IN_THE_KERNEL = ("context-switches", "cpu-migrations")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of core: its counters, its events, how many counters may be used at once, and the bits of its longest vectors."""

    pmu: Pmu
    table: PmuTable
    counters: int
    vector_bits: int | None = None

    @property
    def apart(self) -> bool:
        """Whether it tells fp32 from fp64."""
        return {DType.FP32, DType.FP64} <= set(self.table.sets)


@dataclass(frozen=True, slots=True)
class Plan:
    """Events to count, in runs of what can be counted at once; `whole` means that datatypes are not told apart."""

    kinds: tuple[Kind, ...]
    runs: tuple[tuple[Event, ...], ...]
    whole: bool = False

    def kind(self, event: Event) -> Kind:
        """The kind of core that an event belongs to."""
        return next((kind for kind in self.kinds if kind.pmu.name == event.pmu), self.kinds[0])


def plan(kinds: Sequence[Kind], *, once: bool = False) -> Plan:
    """All events of all kinds, datatypes apart where they can be; with `once`, the total only if that alone fits in one run.

    Raises CannotMeasureError if not even that fits.
    """
    made = _plan(kinds, whole=False)
    if once and len(made.runs) > 1:
        made = _plan(kinds, whole=True)
    if once and len(made.runs) > 1:
        raise CannotMeasureError(
            "The events do not fit on the counters at once.",
            seen=f"They need {len(made.runs)} runs with {min(kind.counters for kind in kinds)} counters.",
            todo="Let the program run more than once (leave --no-time out), or use --counter instrumented.",
        )
    return made


def _plan(kinds: Sequence[Kind], *, whole: bool) -> Plan:
    by_kind = [groups(kind, kind.table.whole() if whole else kind.table.apart()) for kind in kinds]
    count = max(len(each) for each in by_kind)
    runs = tuple(tuple(event for each in by_kind if i < len(each) for event in each[i]) for i in range(count))
    return Plan(tuple(kinds), runs, whole or not all(kind.apart for kind in kinds))


def groups(kind: Kind, rows: Iterable[PmuRow]) -> list[tuple[Event, ...]]:
    """Events in groups that fit on the counters of a kind; each event counts with the counters that it takes.

    Raises CannotMeasureError for an event that takes more counters than there are.
    """
    single = kind.table.budget.single
    found: list[list[Event]] = []
    for row in dict.fromkeys(rows):
        if row.counters > kind.counters:
            raise CannotMeasureError(
                f"{row.name} cannot be counted.",
                seen=f"It takes {row.counters} counters, and {kind.counters} can be used.",
                todo="Use --counter instrumented.",
            )
        event = Event(row.name, row.code, kind.pmu.type, counters=row.counters, pmu=kind.pmu.name)
        for group in found:
            room = kind.counters - sum(each.counters for each in group)
            clash = row.event in single and any(each.config & 0xFF == row.event for each in group)
            if event.counters <= room and not clash:
                group.append(event)
                break
        else:
            found.append([event])
    return [tuple(group) for group in found]


def counters_of(budget: Budget, *, alone: bool) -> int:
    """How many counters a thread has; `alone` if no other thread runs on its core."""
    return budget.alone if alone and budget.alone is not None else budget.counters


def raw_plan(events: Sequence[RawEvent], pmus: Sequence[Pmu], known: PmuTable | None) -> Plan:
    """A plan of events as they were named; an event without a weight has the one of the table, if that knows its code.

    Raw codes are for the first kind of core only: another kind gives them another meaning. They are counted in one run.
    """
    pmu = pmus[0] if pmus else Pmu("cpu", TYPE_RAW)
    rows = tuple(_row(event, known) for event in events)
    table = PmuTable(
        name="given", title="events as given", isa="x86_64", can="yes", budget=Budget(len(rows)), sources=(), row=rows
    )
    run = tuple(
        Event(each.name, SOFTWARE[each.name], TYPE_SOFTWARE, pmu=pmu.name, kernel=each.name in IN_THE_KERNEL)
        if each.name in SOFTWARE
        else Event(each.name, each.code, pmu.type, pmu=pmu.name)
        for each in events
    )
    return Plan((Kind(pmu, table, len(rows)),), (run,), whole=True)


def _row(event: RawEvent, known: PmuTable | None) -> PmuRow:
    row = known.find(code=event.code) if known is not None and event.code else None
    if event.weight is None and row is not None:
        return PmuRow(
            name=event.name, event=row.event, umask=row.umask, code=event.code, source=row.source, operation=row.operation,
            dtype=row.dtype, lanes=row.lanes, weight=row.weight, free="" if row.weight else "it has no weight",
        )  # fmt: skip
    return PmuRow(
        name=event.name,
        event=event.code & 0xFF,
        code=event.code,
        source="the command line",
        operation=Operation.ANY,
        dtype=DType.ANY,
        weight=event.weight,
        free="no weight was given for it" if event.weight is None else "",
    )


def told_apart(plan: Plan, wanted: Collection[DType]) -> DType | None:
    """The first of the wanted datatypes that the plan cannot tell from others, or cannot see; None if there is none."""
    for dtype in sorted(wanted):
        for kind in plan.kinds:
            if plan.whole or dtype not in kind.table.sets:
                return dtype
    return None
