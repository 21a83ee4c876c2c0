"""Does the hardware count right here? Loops of known work are run under its own events, and what is wrong gets a name.

A counter that opens is not yet one that counts: half a virtual PMU stays at zero, a wrong unit mask counts something else, a hypervisor
that does not know paired counters returns half, and others may hold counters. Only running known work tells.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from flopwatch.counters.hardware.loops import Loop
from flopwatch.counters.hardware.opening import Event, Opened, not_always_on
from flopwatch.counters.hardware.perf_event import Kernel, Value, difference
from flopwatch.counters.hardware.plan import Kind, groups
from flopwatch.counters.hardware.refusals import shared
from flopwatch.counters.hardware.surroundings import Surroundings
from flopwatch.events import Reading
from flopwatch.flops.convention import PMU
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.readings import classify_readings
from flopwatch.scope import Scope

ROUNDS = 2000
TOLERANCE = 1000  # one part in so many may be off
NOISE = 64  # FLOP that the interpreter may do around a loop
Run = Callable[[Loop, int], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What calibration found on one kind of core.

    `wrong` are sentences that forbid counting, `facts` are those that belong to every record; `counters` is how many can be
    used at once, which may be fewer than the processor has. `lasting` is false if that is not for good: others held counters.
    """

    counters: int
    wrong: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    todo: str = ""
    lasting: bool = True

    @property
    def passed(self) -> bool:
        """Whether counts can be trusted."""
        return not self.wrong


@dataclass(frozen=True, slots=True)
class _Outcome:
    loop: Loop
    expected: int
    by_dtype: Mapping[DType, int]
    counts: Mapping[str, int]

    @property
    def measured(self) -> int:
        return sum(self.by_dtype.values())

    @property
    def exact(self) -> bool:
        return abs(self.measured - self.expected) <= self.expected // TOLERANCE + NOISE


def calibrate(kernel: Kernel, kind: Kind, loops: Sequence[Loop], run: Run, *, seen: Surroundings) -> Calibration:
    """Run the loops under all events that are needed to tell datatypes apart, and compare.

    Raises CannotMeasureError if the kernel refuses to open an event.
    """
    counters = kind.counters
    with _on(kind) as there:
        while there:
            used = replace(kind, counters=counters)
            counts: dict[str, dict[str, int]] = {loop.name: {} for loop in loops}
            not_on = None
            for events in groups(used, kind.table.apart()):
                not_on = _count(kernel, events, loops, run, counts, seen) or not_on
            if not_on is None:
                break
            needed = max((row.counters for row in kind.table.apart()), default=1)
            if counters - 1 < needed:
                event, value = not_on
                reason, todo = shared(str(event), value.enabled, value.running, seen)
                return Calibration(counters, (f"{reason}.",), todo=todo, lasting=False)
            counters -= 1
    if not there:
        return Calibration(
            kind.counters, facts=("not calibrated: none of its CPUs may be used by this program",), lasting=False
        )
    outcomes = [_outcome(used, loop, counts[loop.name]) for loop in loops]
    wrong = tuple(dict.fromkeys(_wrong(used, outcomes, seen)))
    facts = tuple(_facts(outcomes))
    if counters < kind.counters:
        facts += (f"{counters} of {kind.counters} counters can be used; something else holds the others",)
    todo = "Use --counter instrumented." if wrong else ""
    return Calibration(counters, wrong, facts, todo, lasting=counters == kind.counters)


def _count(
    kernel: Kernel,
    events: Sequence[Event],
    loops: Sequence[Loop],
    run: Run,
    counts: dict[str, dict[str, int]],
    seen: Surroundings,
) -> tuple[Event, Value] | None:
    """Adds what each event counted of each loop; returns an event that was not on a counter all the time."""
    with Opened(kernel, events, seen=seen, inherit=False) as opened:
        opened.enable()
        for loop in loops:
            before = opened.read()[0]
            run(loop, ROUNDS)
            after = opened.read()[0]
            for event, first, last in zip(events, before, after, strict=True):
                counts[loop.name][event.name] = difference(last.counted, first.counted)
        opened.disable()
        return not_always_on(events, opened.read()[0])


@contextmanager
def _on(kind: Kind) -> Iterator[bool]:
    """Runs this thread on the cores of one kind; false if it may use none of them, or they have gone offline."""
    if not kind.pmu.cpus:
        yield True
        return
    before = os.sched_getaffinity(0)
    allowed = before & set(kind.pmu.cpus)
    if not allowed:
        yield False
        return
    try:
        os.sched_setaffinity(0, allowed)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)


def _outcome(kind: Kind, loop: Loop, counts: Mapping[str, int]) -> _Outcome:
    readings = [Reading(Scope(), name, count) for name, count in counts.items()]
    tally = classify_readings(readings, kind.table, vector_bits=kind.vector_bits).tally
    expected = loop.tally(ROUNDS, kind.vector_bits or 128).flop(PMU, "full")
    return _Outcome(loop, sum(expected.values()), tally.flop(PMU, "full"), counts)


def _wrong(kind: Kind, outcomes: Sequence[_Outcome], seen: Surroundings) -> Iterator[str]:
    basic = [outcome for outcome in outcomes if outcome.loop.basic]
    if basic and not any(outcome.measured > NOISE for outcome in basic):
        what = (
            "the virtual PMU of this machine is half there"
            if seen.hypervisor
            else "they do not count on this processor"
        )
        yield f"the events can be opened, but stay at 0 whatever runs: {what}."
        return
    for outcome in basic:
        loop = outcome.loop
        if not outcome.exact:
            yield f"{loop.name}: {_how_much(outcome)}{_culprit(kind, loop, outcome)}."
        elif kind.apart and abs(outcome.by_dtype.get(loop.dtype or DType.ANY, 0) - outcome.expected) > NOISE:
            others = ", ".join(dtype for dtype in outcome.by_dtype if dtype is not loop.dtype)
            yield f"{loop.name}: it is counted as {others}{_culprit(kind, loop, outcome)}."
    for outcome in outcomes:
        if not outcome.expected and outcome.measured > NOISE:
            yield f"{outcome.loop.name}: counted as {outcome.measured:,} FLOP, and it has none."


def _how_much(outcome: _Outcome) -> str:
    if outcome.measured <= NOISE:
        return f"nothing is counted of {outcome.expected:,} FLOP"
    ratio = outcome.measured / outcome.expected
    for factor, words in ((2, "twice"), (0.5, "half")):
        if abs(ratio - factor) < factor / TOLERANCE:
            return f"{words} of {outcome.expected:,} FLOP is counted ({outcome.measured:,})"
    return f"{outcome.measured:,} FLOP are counted instead of {outcome.expected:,}"


def _culprit(kind: Kind, loop: Loop, outcome: _Outcome) -> str:
    """The events that are for a loop of this kind, by name and raw code."""
    rows = [
        row
        for row in kind.table.apart()
        if row.dtype in (loop.dtype, DType.ANY) and row.lanes in (loop.lanes, None)
        and row.operation in (loop.operation, Operation.ANY)
    ]  # fmt: skip
    names = ", ".join(f"{row.name} (r{row.code:x}: {outcome.counts.get(row.name, 0):,})" for row in rows)
    return f"; wrong unit mask or counter that is not merged? {names}" if names else ""


def _facts(outcomes: Sequence[_Outcome]) -> Iterator[str]:
    for operation, what in (
        (Operation.MINMAX, "minimum and maximum"),
        (Operation.DIV, "divisions"),
        (Operation.SQRT, "square roots"),
    ):
        yield from _about(
            [each for each in outcomes if each.loop.operation is operation and not each.loop.masked], what
        )
    yield from _about([each for each in outcomes if each.loop.dtype is DType.BF16], "bf16 dot products")
    yield from _about([each for each in outcomes if each.loop.dtype is DType.FP16], "fp16 operations")
    yield from _about([each for each in outcomes if each.loop.dtype is DType.X87], "x87 operations")
    masked = [each for each in outcomes if each.loop.masked]
    if masked and all(each.exact for each in masked):
        yield "lanes that a mask switched off are counted in full"
    elif masked:
        share = sum(each.measured for each in masked) / sum(each.expected for each in masked)
        yield f"masked instructions count as {share:.0%} of their lanes; the loops have half of them switched on"


def _about(outcomes: Sequence[_Outcome], what: str) -> Iterator[str]:
    if not outcomes:
        return
    if all(outcome.exact for outcome in outcomes):
        yield f"{what} are counted"
    elif all(outcome.measured <= NOISE for outcome in outcomes):
        yield f"{what} are not counted"
    else:
        share = sum(outcome.measured for outcome in outcomes) / sum(outcome.expected for outcome in outcomes)
        yield f"{what} count as {share:.0%} of what they are"
