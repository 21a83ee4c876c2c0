"""Events on threads: opened together, read together, closed together; what the kernel says to that becomes a sentence."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from flopwatch.counters.hardware.perf_event import TYPE_RAW, TYPE_SOFTWARE, Attr, Kernel, Value
from flopwatch.counters.hardware.refusals import refused, shared
from flopwatch.counters.hardware.surroundings import Surroundings
from flopwatch.errors import CannotMeasureError, UsageError

TRIES = 50
NOTHING = Value(0, 0, 0)
SLACK = 1000  # a time may be off by one part in so many: the kernel reads its clock for each event


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the kernel is asked for it; `counters` is how many it takes, `pmu` names the kind of core that has it.

    Events with one name and different `pmu` are one event of a processor with several kinds of cores.
    """

    name: str
    config: int
    type: int = TYPE_RAW
    config1: int = 0
    counters: int = 1
    pmu: str = ""
    kernel: bool = False

    def __str__(self) -> str:
        return f"{self.name} (r{self.config:x})" if self.raw and self.name[1:] != f"{self.config:x}" else self.name

    @property
    def raw(self) -> bool:
        """Whether it is an event of the processor, with a raw code; software events are the kernel's own."""
        return self.type != TYPE_SOFTWARE

    @property
    def attr(self) -> Attr:
        """What the kernel is told: user space only, but for software events that happen in the kernel (`kernel`)."""
        return Attr(self.type, self.config, self.config1, kernel=self.kernel)


class Opened:
    """The same events on several threads of one process (0: the calling thread); to be closed."""

    def __init__(
        self,
        kernel: Kernel,
        events: Sequence[Event],
        threads: Iterable[int] = (0,),
        *,
        seen: Surroundings,
        inherit: bool = True,
        on_exec: bool = False,
        pid: int = 0,
    ) -> None:
        self.events = tuple(events)
        self._kernel = kernel
        self._seen = seen
        self._descriptors: dict[int, list[int]] = {}
        try:
            for thread in threads:
                opened: list[int] = []
                self._descriptors[thread] = opened
                for event in self.events:
                    attr = replace(event.attr, inherit=inherit, enable_on_exec=on_exec)
                    try:
                        opened.append(self._open(attr, thread))
                    except OSError as error:
                        if error.errno == errno.ESRCH and thread:
                            raise ThreadEnded(thread) from error
                        raise refused(error, seen, str(event), pid=pid) from error
        except BaseException:
            self.close()
            raise

    def _open(self, attr: Attr, thread: int) -> int:
        while True:
            try:
                return self._kernel.open(attr, thread)
            except InterruptedError:
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def threads(self) -> tuple[int, ...]:
        """The threads, as they were given."""
        return tuple(self._descriptors)

    def enable(self) -> None:
        """Begin to count on all of them."""
        self._each(self._kernel.enable)

    def disable(self) -> None:
        """Stop counting; what was counted can still be read."""
        self._each(self._kernel.disable)

    def _each(self, do: Callable[[int], None]) -> None:
        for opened in self._descriptors.values():
            for descriptor in opened:
                do(descriptor)

    def read(self) -> dict[int, tuple[Value, ...]]:
        """By thread, what each event has counted until now, with all that the thread has started since.

        Raises CannotMeasureError for an event that the kernel has taken off its counter for good.
        """
        read = self._kernel.read
        return {
            thread: tuple(
                read(descriptor) or self._lost(event) for descriptor, event in zip(opened, self.events, strict=True)
            )
            for thread, opened in self._descriptors.items()
        }

    def _lost(self, event: Event) -> Value:
        reason, todo = shared(str(event), 0, 0, self._seen)
        raise CannotMeasureError("An event could not be kept on its counter.", seen=f"{reason}.", todo=todo)

    def close(self) -> None:
        """Give all events up."""
        self._each(self._kernel.close)
        self._descriptors.clear()


class ThreadEnded(Exception):
    """A thread ended before its events were opened."""


def threads_of(pid: int) -> set[int]:
    """The threads of a process; empty if it has ended."""
    try:
        return {int(name) for name in os.listdir(f"/proc/{pid}/task")}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def open_process(
    kernel: Kernel,
    events: Sequence[Event],
    pid: int,
    *,
    seen: Surroundings,
    listed: Callable[[int], set[int]] = threads_of,
    own: bool = False,
) -> Opened:
    """The events on all threads of a process, and on all that these start from here on.

    A thread that is started while events are opened may have inherited them or not, and would be counted twice or never; so
    nothing counts before the list of threads is the same after opening as it was before. Raises UsageError if the process has
    ended, CannotMeasureError if its threads come and go too fast or the kernel refuses.
    """
    for attempt in range(TRIES):
        before = listed(pid)
        if not before:
            raise UsageError(f"Process {pid} has ended already.")
        try:
            opened = Opened(kernel, events, sorted(before), seen=seen, pid=0 if own else pid)
        except ThreadEnded:
            continue
        if listed(pid) <= before:
            return opened
        opened.close()
        time.sleep(attempt / 1000)
    raise CannotMeasureError(
        f"The threads of process {pid} could not be followed.",
        seen=f"They came and went while {TRIES} attempts were made to open events on all of them.",
        todo="Start the program under flopwatch instead.",
    )


def not_always_on(events: Sequence[Event], values: Sequence[Value], kinds: int = 1) -> tuple[Event, Value] | None:
    """The first event that was not on a counter all the time that it was wanted, with its times; None if all were.

    On a processor with several `kinds` of cores an event runs only while its thread is on its kind: then the events of one
    kind have to have run equally long, and all kinds together, if each has an event here, all of the time.
    """
    longest: dict[str, int] = {}
    for event, value in zip(events, values, strict=True):
        longest[event.pmu] = max(longest.get(event.pmu, 0), value.running)
    whole = sum(longest.values()) if len(longest) >= kinds else None
    for event, value in zip(events, values, strict=True):
        slack = value.enabled // SLACK
        if longest[event.pmu] - value.running > slack:
            return event, Value(0, longest[event.pmu], value.running)
        if whole is not None and value.enabled - whole > slack:
            return event, Value(0, value.enabled, whole)
    return None
