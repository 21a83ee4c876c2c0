"""A kernel and a PMU that do what a test says: every refusal, shared counters, wrong unit masks, counters that stay at 0."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flopwatch.counters.hardware.loops import Loop
from flopwatch.counters.hardware.perf_event import TYPE_RAW, Attr, Page, Value
from flopwatch.counters.hardware.plan import Kind
from flopwatch.counters.hardware.policy import Policy
from flopwatch.counters.hardware.surroundings import Pmu, Surroundings
from flopwatch.flops.convention import PMU
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.pmu import Budget, PmuRow, PmuSet, PmuTable
from flopwatch.processors import Processor

FLAGS = frozenset(("fpu", "sse2", "avx2", "fma", "avx512f", "avx512_bf16"))
SEEN = Surroundings(pmus=(Pmu("cpu", TYPE_RAW),))
SECOND = 1_000_000_000
WIDTHS = ("SCALAR", "128B", "256B", "512B")


def split_table(counters: int = 8, counters_each: int = 1, name: str = "split") -> PmuTable:
    """Events for each width of fp32 and fp64: what they count per instruction is the number of operations of one lane."""
    rows = [
        PmuRow(
            name=f"{width}_{dtype.upper()}",
            event=0xC7,
            umask=1 << bit,
            code=0xC7 | (1 << bit) << 8,
            source="a test",
            operation=Operation.ANY,
            dtype=dtype,
            lanes=lanes,
            weight=lanes,
            counters=counters_each,
        )
        for bit, (width, dtype, lanes) in enumerate(
            (width, dtype, 1 if width == "SCALAR" else int(width[:-1]) // dtype.bits)
            for dtype in (DType.FP32, DType.FP64)
            for width in WIDTHS
        )
    ]
    sets = tuple(
        PmuSet(dtype, tuple(row.name for row in rows if row.dtype is dtype)) for dtype in (DType.FP32, DType.FP64)
    )
    return PmuTable(
        name=name, title=f"The {name} core", isa="x86_64", can="yes", budget=Budget(counters), sources=("a test",),
        set=sets, row=tuple(rows),
    )  # fmt: skip


def total_table(counters: int = 6) -> PmuTable:
    """One event for the FLOP of all datatypes, which takes two counters."""
    row = PmuRow(
        name="ALL_FLOP", event=3, umask=0xF, code=0xF03, source="a test", operation=Operation.ANY, dtype=DType.ANY,
        weight=1, counters=2,
    )  # fmt: skip
    return PmuTable(
        name="total", title="The total core", isa="x86_64", can="yes", budget=Budget(counters), sources=("a test",),
        cannot_split=("It has one total for all precisions.",), set=(PmuSet(DType.ANY, (row.name,)),), row=(row,),
    )  # fmt: skip


Model = Callable[[PmuRow, Loop, int], int]


def right(row: PmuRow, loop: Loop, flop: int) -> int:
    """What a PMU counts that does what its table says; like most, it sees neither bf16 nor x87."""
    if row.dtype is not DType.ANY and (row.dtype is not loop.dtype or row.lanes != loop.lanes):
        return 0
    if loop.dtype not in (DType.FP32, DType.FP64):
        return 0
    return flop // (row.weight or 1)


@dataclass
class _Event:
    attr: Attr
    pid: int
    on: bool
    counted: int = 0
    enabled: int = 0
    running: int = 0


@dataclass
class FakeKernel:
    """Counts the loops that are given to `run`; `refuse` has errors by raw code, or for all under None.

    `counters` are those that really are free: if more are wanted, each event runs for a share of the time.
    """

    table: PmuTable = field(default_factory=split_table)
    model: Model = right
    refuse: Mapping[int | None, int] = field(default_factory=dict)
    counters: int = 99
    descriptors: int = 10_000
    pinned_off: bool = False
    events: dict[int, _Event] = field(default_factory=dict)
    opened: list[tuple[Attr, int]] = field(default_factory=list)
    closed: int = 0

    def open(self, attr: Attr, pid: int, cpu: int = -1) -> int:
        if (number := self.refuse.get(attr.config, self.refuse.get(None, 0))) != 0:
            raise OSError(number, os.strerror(number))
        if len(self.events) >= self.descriptors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        descriptor = 100 + len(self.opened)
        self.opened.append((attr, pid))
        self.events[descriptor] = _Event(attr, pid, not attr.disabled)
        return descriptor

    def enable(self, descriptor: int) -> None:
        self.events[descriptor].on = True

    def disable(self, descriptor: int) -> None:
        self.events[descriptor].on = False

    def read(self, descriptor: int) -> Value | None:
        if self.pinned_off:
            return None
        event = self.events[descriptor]
        return Value(event.counted, event.enabled, event.running)

    def page(self, descriptor: int) -> Page:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def close(self, descriptor: int) -> None:
        del self.events[descriptor]
        self.closed += 1

    def run(self, loop: Loop, rounds: int) -> None:
        """Execute a loop on this PMU."""
        flop = sum(loop.tally(rounds).flop(PMU, "full").values())
        self.tick({row.code: self.model(row, loop, flop) for row in self.table.rows})

    def tick(self, counts: Mapping[int, int], nanoseconds: int = SECOND) -> None:
        """Let time pass in which events of these codes happen."""
        on = [event for event in self.events.values() if event.on or event.attr.enable_on_exec]
        each = max((row.counters for row in self.table.rows), default=1)
        share = min(1.0, self.counters / (each * len(on))) if on else 1.0
        for event in on:
            event.enabled += nanoseconds
            event.running += int(nanoseconds * share)
            event.counted += int(counts.get(event.attr.config, 0) * share)


def kind(table: PmuTable | None = None, pmu: Pmu = SEEN.pmus[0]) -> Kind:
    """A kind of core with that table."""
    given = table or split_table()
    return Kind(pmu, given, given.budget.counters)


def policy(kernel: FakeKernel, cached: Path, seen: Surroundings = SEEN, flags: frozenset[str] = FLAGS) -> Policy:
    """A policy on a machine with that kernel and the kind of core that the kernel has."""
    made = Policy(
        seen, kernel, kernel.run, flags, "x86_64", cached, find=lambda: Processor("fake", (), "fake", 1, 2, 3)
    )
    made.__dict__["kinds"] = (kind(kernel.table, seen.pmus[0]),)
    return made
