"""Count inside this process by hardware: events on each of its threads, read at every border between labels."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from flopwatch.counters import KindReadings, LabelledReadings, Region, Thread
from flopwatch.counters.hardware.opening import Opened, not_always_on, open_process
from flopwatch.counters.hardware.perf_event import Kernel, Value, difference
from flopwatch.counters.hardware.plan import Plan
from flopwatch.counters.hardware.refusals import shared
from flopwatch.counters.hardware.surroundings import Surroundings
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.events import Reading
from flopwatch.scope import Scope

Counts = dict[int, list[int]]  # by thread, a count for each event


class Engine:
    """Counts all threads of this process between `start` and `stop`, those that they start with them; one run of events only.

    Whoever makes it has seen to it that the plan fits in one run. Events that were not on a counter all the time are named in
    `reasons`: their counts are too low, and nothing is scaled.
    """

    counter = "hardware"

    def __init__(
        self, plan: Plan | Callable[[], Plan], kernel: Kernel, seen: Surroundings, facts: Sequence[str] = ()
    ) -> None:
        self.reasons: list[str] = []
        self.facts = tuple(facts)
        self._given = plan
        self._kernel, self._seen = kernel, seen
        self._opened: Opened | None = None
        self._lock = threading.Lock()
        self._last: dict[int, tuple[Value, ...]] = {}
        self._work: dict[int, Counts] = {}
        self._names: dict[int, str] = {}

    def open(self) -> None:
        """Make the plan. Raises CannotMeasureError if it does not fit on the counters at once."""
        self._plan = self._given if isinstance(self._given, Plan) else self._given()
        if len(self._plan.runs) > 1:
            raise CannotMeasureError(
                "The events do not fit on the counters at once.",
                seen=f"They need {len(self._plan.runs)} runs.",
                todo="Use the instrumented counter.",
            )

    def attach_threads(self) -> None:
        """Open the events on all threads that exist, the calling one too; nothing counts yet."""
        if self._opened is not None:
            raise UsageError("Counting is under way already.", todo="End the first `with flopwatch.count()` before.")
        self._opened = open_process(self._kernel, self._plan.runs[0], os.getpid(), seen=self._seen, own=True)
        self._names = {thread: _name(thread) for thread in self._opened.threads}

    def start(self) -> None:
        """Count from here on."""
        opened = self._events()
        opened.enable()
        self._last = opened.read()

    def settle(self, label: int) -> None:
        """Everything that was counted since the last settlement belongs to `label`."""
        with self._lock:
            now = self._events().read()
            of_label = self._work.setdefault(label, {})
            for thread, values in now.items():
                counts = of_label.setdefault(thread, [0] * len(values))
                for i, (value, before) in enumerate(zip(values, self._last[thread], strict=True)):
                    counts[i] += difference(value.counted, before.counted)
            self._last = now

    def stop(self) -> None:
        """Stop counting and give the events up; what was settled is kept."""
        opened = self._events()
        try:
            opened.disable()
            for values in opened.read().values():
                found = not_always_on(opened.events, values, len(self._plan.kinds))
                if found is not None:
                    event, value = found
                    reason, _ = shared(str(event), value.enabled, value.running, self._seen)
                    self.reasons.append(f"{reason}, so its count is too low")
        finally:
            opened.close()
            self._opened = None
            self.reasons = list(dict.fromkeys(self.reasons))

    def read(self) -> list[LabelledReadings]:
        """What was counted, by label, thread and kind of core."""
        events = self._plan.runs[0]
        found = []
        for label, of_label in self._work.items():
            for thread, counts in of_label.items():
                for kind in self._plan.kinds:
                    readings = tuple(
                        Reading(Scope(thread=str(thread)), event.name, count, event.config if event.raw else 0)
                        for event, count in zip(events, counts, strict=True)
                        if self._plan.kind(event) is kind
                    )
                    found.append(
                        LabelledReadings(label, str(thread), KindReadings(kind.table, readings, kind.vector_bits))
                    )
        return found

    def regions(self) -> list[Region]:
        """Nothing: events do not say where they happened."""
        return []

    def threads(self) -> list[Thread]:
        """The threads that had events of their own."""
        return [Thread(thread, name) for thread, name in self._names.items()]

    def _events(self) -> Opened:
        if self._opened is None:
            raise UsageError("Counting is not under way.")
        return self._opened


def _name(thread: int) -> str:
    try:
        return Path(f"/proc/self/task/{thread}/comm").read_text().strip()
    except OSError:
        return ""
