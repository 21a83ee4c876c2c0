"""Count a command from its first instruction, or a process that is running, by hardware."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flopwatch.counters import CommandOptions, CommandResult, KindReadings, ProcessImage, Thread
from flopwatch.counters.hardware.opening import Event, Opened, not_always_on, open_process
from flopwatch.counters.hardware.perf_event import Kernel, Value
from flopwatch.counters.hardware.plan import Plan
from flopwatch.counters.hardware.refusals import shared
from flopwatch.counters.hardware.surroundings import Surroundings
from flopwatch.errors import CannotMeasureError
from flopwatch.events import Reading
from flopwatch.scope import Scope
from flopwatch.subjects import process
from flopwatch.subjects.timing import Input

TOGETHER = "the processes and threads of the command are counted together: events add what children do to their parent"
WITH_PARENT = "threads and processes that were started meanwhile are counted with the thread that started them"


def run(
    argv: Sequence[str],
    options: CommandOptions,
    plan: Plan,
    kernel: Kernel,
    seen: Surroundings,
    notes: Sequence[str] = (),
) -> CommandResult:
    """Run a command once for each set of events that fits on the counters; all runs but the first have no output.

    The events are opened on this thread, disabled, and are inherited by the command: exec enables them. An event that
    was not on a counter all the time is counted again alone; CannotMeasureError if that does not help, and it may run again.
    """
    todo = deque(plan.runs)
    given = Input()
    first: process.Ended | None = None
    reasons: list[str] = []
    counted: list[tuple[Event, Value]] = []
    runs = 0
    while todo:
        events = todo.popleft()
        with Opened(kernel, events, seen=seen, on_exec=True) as opened:
            ended = process.run(argv, options.env) if first is None else _again(argv, options.env, given)
            values = opened.read()[0]
        runs += 1
        if first is None:
            first = ended
        elif (ended.exit_code, ended.signal) != (first.exit_code, first.signal):
            reasons.append("the command ended differently when it ran again for further events")
        interrupted = first.interrupted or ended.interrupted
        found = not_always_on(events, values, len(plan.kinds))
        if found is not None:
            may_rerun = not (options.needs.once or interrupted) and given.repeatable()
            if may_rerun and len(events) > 1:
                half = (len(events) + 1) // 2
                todo.extendleft((events[half:], events[:half]))
                continue
            reasons.append(_too_low(found, seen, may_rerun))
        counted += zip(events, values, strict=True)
        if interrupted or (todo and not given.repeatable()):
            missing = [event.name for events in todo for event in events]
            if missing:
                reasons.append(f"not counted, since the command did not run again: {', '.join(missing)}")
            break
    assert first is not None
    again = (f"the command ran {runs} times to count all events; output of the first run only",) if runs > 1 else ()
    image = ProcessImage(first.pid, os.getpid(), tuple(argv), readings=_readings(plan, {0: counted}))
    return CommandResult(
        first.exit_code,
        first.signal,
        (image,),
        reasons=tuple(reasons),
        interrupted=first.interrupted,
        notes=(TOGETHER, *again, *notes),
    )


def _too_low(found: tuple[Event, Value], seen: Surroundings, may_rerun: bool) -> str:
    event, value = found
    reason, todo = shared(str(event), value.enabled, value.running, seen)
    if may_rerun:  # it was alone, and still not always on
        raise CannotMeasureError(
            "The event could not be counted.",
            seen=f"{reason[0].upper()}{reason[1:]}, and counts are never scaled.",
            todo=todo,
        )
    return f"{reason}, so its count is too low"


def _again(argv: Sequence[str], env: Mapping[str, str] | None, given: Input) -> process.Ended:
    source = given.open()
    try:
        sys.stdout.flush()
        return process.run(argv, env, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        os.close(source)


def attach(
    pid: int,
    wait: Callable[[], bool],
    plan: Plan,
    kernel: Kernel,
    seen: Surroundings,
    notes: Sequence[str] = (),
) -> CommandResult:
    """Count a running process with all its threads, and what it starts from here on, while `wait()` blocks.

    Raises UsageError if it has ended, CannotMeasureError if the kernel refuses.
    """
    argv = tuple(os.fsdecode(word) for word in _bytes(f"/proc/{pid}/cmdline").split(b"\0")[:-1])
    events = plan.runs[0]
    with open_process(kernel, events, pid, seen=seen) as opened:
        names = {tid: _bytes(f"/proc/{pid}/task/{tid}/comm").decode(errors="replace").strip() for tid in opened.threads}
        opened.enable()
        try:
            interrupted = wait()
        except KeyboardInterrupt:
            interrupted = True
        opened.disable()
        values = opened.read()
    reasons = [
        _too_low(found, seen, may_rerun=False)
        for each in values.values()
        if (found := not_always_on(events, each, len(plan.kinds))) is not None
    ]
    by_thread = {tid: list(zip(events, each, strict=True)) for tid, each in values.items()}
    image = ProcessImage(
        pid,
        argv=argv,
        how="attach",
        threads=tuple(Thread(tid, name) for tid, name in names.items()),
        readings=_readings(plan, by_thread),
    )
    return CommandResult(
        0, 0, (image,), reasons=tuple(dict.fromkeys(reasons)), interrupted=interrupted, notes=(WITH_PARENT, *notes)
    )


def _readings(plan: Plan, counted: Mapping[int, Sequence[tuple[Event, Value]]]) -> tuple[KindReadings, ...]:
    """The counts by kind of core. Times are the event's own: on another kind of core it was rightly not running."""
    found = []
    for kind in plan.kinds:
        readings = tuple(
            Reading(
                Scope(thread=str(thread) if thread else ""),
                event.name,
                value.counted,
                event.config if event.raw else 0,
                value.running,
                value.running,
            )
            for thread, each in counted.items()
            for event, value in each
            if plan.kind(event) is kind
        )
        found.append(KindReadings(kind.table, readings, kind.vector_bits))
    return tuple(found)


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
