"""Two rates by themselves: how fast the processor trains when data is there, and how fast data comes when nobody trains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

from flopwatch.training.clock import Clock

SECONDS = 3.0
"""How long each rate is measured at least, if one batch does not take longer."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Images in a stretch of seconds, after a start that took `start_up` seconds and is not in it."""

    images: int
    seconds: float
    start_up: float

    @property
    def per_second(self) -> float:
        """Images ÷ seconds."""
        return self.images / self.seconds


def compute(trained: Any, loss: Any, pictures: Any, labels: Any, clock: Clock, seconds: float = SECONDS) -> Rate:
    """Train on one batch that lies on the device, again and again; the network learns, so give a copy.

    One step is start-up: allocations, search for kernels, compilation. A second one is too, where that took most of its time.
    """

    def step() -> float:
        clock.begin()
        trained.zero()
        trained.backward(loss(trained.forward(pictures), labels))
        trained.step()
        clock.count(len(labels))
        return clock.end().seconds

    trained.model.train()
    first = step()
    start_up = first
    if first < seconds:
        start_up += step()
    taken: list[float] = []
    while not taken or sum(taken) + taken[-1] / 2 < seconds:
        taken.append(step())
    trained.zero()
    return Rate(len(labels) * len(taken), sum(taken), start_up)


def loader(batches: Iterable[Any], workers: int, clock: Clock, seconds: float = SECONDS) -> Rate:
    """Take batches from a loader that never ends, and do nothing with them.

    The first batch of each worker is start-up, and so is one more of each: they come in bursts, after the start of the workers.
    """
    iterator = iter(batches)
    clock.begin()
    for _ in range(2 * workers if workers else 1):
        next(iterator)
    start_up = clock.end().seconds
    images, taken, count = 0, 0.0, 0
    while taken < seconds or count < workers:
        _, labels = next(iterator)
        clock.count(len(labels))
        window = clock.end()
        images, taken, count = images + window.images, taken + window.seconds, count + 1
    return Rate(images, taken, start_up)


def advice(waited: float | None, compute_rate: float | None, loader_rate: float | None, workers: int, cpus: int) -> str:
    """A sentence on whether data or the processor is the bottleneck; empty if nothing is to be said.

    `waited` is the share of time without data. Workers are taken to add up, which they do until the cores are busy.
    """
    if compute_rate is None or loader_rate is None or waited is None:
        return ""
    if loader_rate >= compute_rate and waited < 0.1:
        return ""
    if loader_rate >= compute_rate:
        return f"{waited:.0%} of the time was spent waiting for data, although the loader alone is fast enough"
    if workers == 0:
        # In the loop's own process data and training take turns, so that one worker gives what the loader gives alone.
        needed = ceil(compute_rate / loader_rate)
    else:
        needed = ceil(compute_rate / (loader_rate / workers))
    many = f", more than the {cpus} cores here" if needed > cpus else ""
    return f"loader-bound: {needed} workers needed, {workers} there{many}; {waited:.0%} of the time was spent waiting for data"
