"""An in-process engine that counts what tests say they execute: n runs of one block, one mulss and one addss in each."""

from __future__ import annotations

from dataclasses import dataclass

from flopwatch.counters import Region, Thread
from tests.fakes import MULSS_ADDSS

FLOP = 2
"""FLOP of one unit of work."""

_running: FakeEngine | None = None


def work(amount: int) -> None:
    """Execute so many blocks."""
    if _running is not None:
        _running.pending += amount


@dataclass
class Labelled:
    label: int
    runs: int
    thread: str = "1"
    address: int = 0x1000
    code: bytes = MULSS_ADDSS
    active: tuple[tuple[int, int], ...] = ()


class FakeEngine:
    """Counts between start and stop only."""

    def __init__(self) -> None:
        self.pending = 0
        self.reasons: list[str] = []
        self.blocks: list[Labelled] = []

    def open(self) -> None:
        pass

    def attach_threads(self) -> None:
        pass

    def start(self) -> None:
        global _running
        assert _running is None
        _running = self

    def stop(self) -> None:
        global _running
        _running = None

    def settle(self, label: int) -> None:
        assert _running is self
        if self.pending:
            self.blocks.append(Labelled(label, self.pending))
        self.pending = 0

    def regions(self) -> list[Region]:
        return []

    def threads(self) -> list[Thread]:
        return [Thread(1, "fake")]

    def read(self) -> list[Labelled]:
        return self.blocks
