"""An honest clock: it waits for the processor at the edges of windows only, and keeps first batches, waiting and work apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

Item = TypeVar("Item")
Now = Callable[[], float]
Sync = Callable[[], None]

FIRST = 3
"""Batches at the start of a run that are timed apart: caches, first allocations, search for kernels, compilation."""

WINDOWS = 10
"""Into how many windows an epoch is cut, to see whether it slows down."""


def synchronizer(device: str) -> Sync:
    """What waits until everything that was asked of a device (`cuda:0`, `mps`, `xpu`, `cpu`) has been computed."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return _nothing
    import torch

    backend = getattr(torch, kind, None)
    wait = getattr(backend, "synchronize", None)
    if wait is None:
        raise ValueError(f"nobody knows how to wait for {device}")
    found: Sync = wait
    return found


def _nothing() -> None:
    """A CPU computes while it is asked."""


@dataclass(slots=True)
class Window:
    """A stretch of an epoch between two moments when the processor had finished: images, seconds, seconds of them without data."""

    images: int
    seconds: float
    waited: float
    batches: int = 0

    def add(self, other: Window) -> None:
        """Make this the two together."""
        self.images += other.images
        self.seconds += other.seconds
        self.waited += other.waited
        self.batches += other.batches


@dataclass(slots=True)
class Lap:
    """One pass over data on the clock.

    `first` is the window with the run's first batches, `windows` are the steady ones after it.
    """

    first: Window | None = None
    windows: list[Window] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """All of it, with the first batches."""
        return sum(each.seconds for each in self._all)

    @property
    def images(self) -> int:
        """All of them."""
        return sum(each.images for each in self._all)

    @property
    def rate(self) -> float | None:
        """Images ÷ seconds of the steady windows, of everything where there is no steady one; None without time."""
        steady = self.windows or self._all
        seconds = sum(each.seconds for each in steady)
        return sum(each.images for each in steady) / seconds if seconds > 0 else None

    @property
    def steady(self) -> bool:
        """Whether the rate leaves the first batches out, or need not."""
        return self.first is None or bool(self.windows)

    @property
    def waited(self) -> float | None:
        """The share of the steady time in which the loop had no data."""
        steady = self.windows or self._all
        seconds = sum(each.seconds for each in steady)
        return sum(each.waited for each in steady) / seconds if seconds > 0 else None

    @property
    def trend(self) -> float | None:
        """Rate of the last third of the steady windows ÷ that of the first third, by medians; None for fewer than six windows."""
        third = len(self.windows) // 3
        if third < 2:
            return None
        rates = [each.images / each.seconds for each in self.windows if each.seconds > 0]
        if len(rates) != len(self.windows):
            return None
        return median(rates[-third:]) / median(rates[:third])

    @property
    def _all(self) -> list[Window]:
        return [*([self.first] if self.first else []), *self.windows]

    def as_state(self) -> dict[str, Any]:
        """Plain numbers, for a checkpoint."""

        def plain(each: Window) -> list[float]:
            return [each.images, each.seconds, each.waited, each.batches]

        return {"first": plain(self.first) if self.first else None, "windows": [plain(each) for each in self.windows]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Lap:
        """What `as_state` wrote."""

        def window(row: list[float]) -> Window:
            return Window(int(row[0]), row[1], row[2], int(row[3]))

        return cls(window(state["first"]) if state["first"] else None, [window(each) for each in state["windows"]])


class Clock:
    """Times passes over data; `now` and `sync` are a wall clock and what waits for the processor."""

    def __init__(self, sync: Sync, now: Now = time.perf_counter) -> None:
        self._sync = sync
        self._now = now
        self._start = 0.0
        self._window = Window(0, 0.0, 0.0)

    def begin(self) -> None:
        """Start a window: everything asked for before is done."""
        self._sync()
        self._start = self._now()
        self._window = Window(0, 0.0, 0.0)

    def batches(self, source: Iterable[Item]) -> Iterator[Item]:
        """The same batches, with the time between asking for one and having it booked as waiting."""
        iterator = iter(source)
        while True:
            asked = self._now()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            finally:
                self._window.waited += self._now() - asked
            yield batch

    def count(self, images: int) -> None:
        """One more batch was handed to the processor."""
        self._window.images += images
        self._window.batches += 1

    @property
    def pending(self) -> int:
        """Batches in the open window."""
        return self._window.batches

    def end(self) -> Window:
        """Close the window, when the processor has finished, and begin the next."""
        self._sync()
        end = self._now()
        window = self._window
        window.seconds = end - self._start
        self._start = end
        self._window = Window(0, 0.0, 0.0)
        return window
