"""Count inside this process: follow its threads from a call on, and split what they execute by labels."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flopwatch.counters import Region, Thread
from flopwatch.counters.instrumented import ledger, library, stopping
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import opcode_filter
from flopwatch.scope import Scope

LOG_ENTRY_BYTES = 24
LANE_BASE = 1 << 32
PATIENCE = 20  # milliseconds


@dataclass(frozen=True, slots=True)
class LabelledBlock:
    """A basic block, and how often a thread ran it between settlements of one label."""

    label: int
    thread: str
    address: int
    code: bytes
    runs: int
    active: tuple[tuple[int, int], ...] = ()


@cache
def _engine() -> ctypes.PyDLL:
    """The engine in this process, with its types; the interpreter's lock is kept during its calls, which are short."""
    path = library.find()
    if path is None:
        raise CannotMeasureError(
            "The counting engine has not been built.", todo="Install flopwatch with a C compiler at hand."
        )
    engine = ctypes.PyDLL(str(path))
    for name in ("flopwatch_ledger", "flopwatch_log"):
        getattr(engine, name).restype = ctypes.c_void_p
    engine.flopwatch_log_length.restype = ctypes.c_uint64
    engine.flopwatch_open.argtypes = [ctypes.c_char_p]
    engine.flopwatch_follow.argtypes = [ctypes.c_uint32]
    engine.flopwatch_settle.argtypes = [ctypes.c_uint32]
    status = engine.flopwatch_open(opcode_filter())
    if status < 0:
        raise CannotMeasureError("The counting engine could not start.", seen=f"{os.strerror(-status)}.")
    return engine


class Engine:
    """Follows all threads of this process between `start` and `stop`; only one can at a time.

    A thread that cannot be followed is named in `reasons`, which makes the record partial.
    """

    _running: Engine | None = None

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self._deaf: dict[int, int] = {}  # threads that block all signals, and how long they had run
        self._notes = self._overflow = self._lost = 0
        self._blocks: tuple[LabelledBlock, ...] = ()
        self._regions: tuple[Region, ...] = ()

    def open(self) -> None:
        """Load the engine. Raises CannotMeasureError if that is not possible here."""
        _engine()

    def attach_threads(self) -> None:
        """Follow the threads that exist, the calling one apart."""
        engine = _engine()
        own = threading.get_native_id()
        known: set[int] = set()
        while new := {int(name) for name in os.listdir("/proc/self/task")} - known - {own}:
            for tid in sorted(new):
                if _blocks(tid, engine.flopwatch_signal()):
                    self._deaf[tid] = _run_time(tid)
                    continue
                status = engine.flopwatch_follow(tid)
                if status < 0 and Path(f"/proc/self/task/{tid}").exists():
                    self.reasons.append(f"thread {tid} could not be followed ({os.strerror(-status)})")
            known |= new

    def start(self) -> None:
        """Follow the calling thread from here on. Raises UsageError if counting is under way already."""
        engine = _engine()
        if Engine._running is not None:
            raise UsageError("Counting is under way already.", todo="End the first `with flopwatch.count()` before.")
        head = self._head()
        self._notes, self._overflow, self._lost = head.notes, head.overflow, head.lost_children
        Engine._running = self
        engine.flopwatch_discard()
        if engine.flopwatch_begin() < 0:
            Engine._running = None
            raise CannotMeasureError("The calling thread could not be followed.")

    def stop(self) -> None:
        """Let all threads go on uninstrumented, and keep what was counted."""
        engine = _engine()
        engine.flopwatch_end()
        Engine._running = None
        engine.flopwatch_stop()
        self._keep()

    def settle(self, label: int) -> None:
        """Everything that all followed threads executed since the last settlement belongs to `label`."""
        _engine().flopwatch_settle(label)

    def read(self) -> tuple[LabelledBlock, ...]:
        """The blocks that ran, by label and thread."""
        return self._blocks

    def regions(self) -> tuple[Region, ...]:
        """Where code was mapped."""
        return self._regions

    def _view(self) -> memoryview:
        address = _engine().flopwatch_ledger()
        return memoryview((ctypes.c_char * ledger.AREAS).from_address(address)).cast("B")

    def _head(self) -> ledger.Header:
        return ledger.header(self._view())

    def _keep(self) -> None:
        engine = _engine()
        view, head = self._view(), self._head()
        count = engine.flopwatch_log_length()
        raw = (ctypes.c_char * (LOG_ENTRY_BYTES * count)).from_address(engine.flopwatch_log()) if count else b""
        words = memoryview(raw).cast("B").cast("Q") if count else memoryview(b"")
        runs: dict[tuple[int, int], dict[int, int]] = {}
        lanes: dict[tuple[int, int], dict[int, int]] = {}
        for i in range(0, 3 * count, 3):
            key = (words[i] & 0xFFFFFFFF, words[i] >> 32)
            index = words[i + 1]
            table = runs if index < LANE_BASE else lanes
            of_key = table.setdefault(key, {})
            of_key[index & (LANE_BASE - 1)] = of_key.get(index & (LANE_BASE - 1), 0) + words[i + 2]
        slots = ledger.threads(view, head)
        table_of_blocks = ledger.Blocks(view)
        found = []
        for (label, slot), of_key in runs.items():
            masks = Counter(lanes.get((label, slot), {}))  # a lane that was never on has no entry
            for index, n in of_key.items():
                block = table_of_blocks.event(index, n, Scope(), masks.__getitem__)
                thread = str(slots[slot].tid)
                found.append(LabelledBlock(label, thread, block.address, block.code, n, block.active))
        self._blocks = tuple(found)
        self._regions = ledger.regions(view, head)
        self.reasons += ledger.notes(view, head)[self._notes :]
        for tid, before in self._deaf.items():
            if (ran := _run_time(tid) - before) > 0:
                self.reasons.append(f"thread {tid} blocks signals and was not counted; it ran for {ran / 1e6:.3g} ms")
        if head.overflow > self._overflow:
            self.reasons.append("blocks, threads or regions found no room in the counting tables")
        if head.lost_children > self._lost:
            self.reasons.append(f"{head.lost_children - self._lost} child processes were not counted")

    def threads(self) -> tuple[Thread, ...]:
        """The threads that were followed."""
        view, head = self._view(), self._head()
        return tuple(Thread(slot.tid, slot.name) for slot in ledger.threads(view, head))


def _blocks(tid: int, signal: int) -> bool:
    """Whether a thread blocks a signal for good, as the input and output threads of message libraries do."""
    for _ in range(PATIENCE):
        mask = int(stopping.status(os.getpid(), tid).get("SigBlk", "0"), 16)
        if not mask >> (signal - 1) & 1:
            return False
        time.sleep(0.001)  # libraries also do so for a moment
    return True


def _run_time(tid: int) -> int:
    """For how many nanoseconds a thread has run; 0 if it has ended, or the system does not say."""
    try:
        return int(Path(f"/proc/self/task/{tid}/schedstat").read_text().split()[0])
    except OSError:
        return 0
