"""End the counting in running processes: every thread goes on natively, and what was counted stays as it is."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flopwatch.counters.instrumented import ledger, ptrace
from flopwatch.counters.instrumented.injection import Engine, engine_in
from flopwatch.counters.instrumented.memory import opened
from flopwatch.counters.instrumented.stopping import Gone, StoppedProcess, has_ended, in_call, stopped
from flopwatch.errors import CannotMeasureError, FlopwatchError

FREEZING = 500  # tries to find no thread in the middle of a translation
LEAVING = 2.0  # seconds in which threads leave the translation
STATE = struct.Struct("<I")


def end_all(pid: int, place: Path) -> list[str]:
    """End the counting in the process and in all that it started."""
    reasons: list[str] = []
    done: set[int] = set()
    while new := [other for other in _followed(pid, place) if other not in done]:
        for other in new:
            done.add(other)
            try:
                _end(other, place)
            except (Gone, ProcessLookupError):
                continue
            except FlopwatchError as error:
                reasons.append(f"process {other} could not be left: {error}")
    return reasons


def _followed(pid: int, place: Path) -> list[int]:
    """Living processes with a ledger, oldest first."""
    names = {int(path.name.split(".")[0]) for path in place.iterdir() if path.name[0].isdigit()}
    return [other for other in (pid, *sorted(names - {pid})) if not has_ended(other)]


def _end(pid: int, place: Path) -> None:
    with opened(pid) as memory:
        for attempt in range(FREEZING):
            with stopped(pid) as process:
                if not process.tids:
                    raise CannotMeasureError("it waits inside the system and cannot be stopped.")
                states = _thread_states(place, pid)
                with engine_in(process.tids[0], memory, place) as engine:
                    # Threads at work in the engine itself are given some time to come out of it.
                    quiet = attempt > FREEZING // 10 or not any(map(engine.holds, process.registers.values()))
                    frozen = quiet and engine.call("freeze") == 0
                    new = _release_all(process, engine) if frozen else {}
                for tid, registers in new.items():
                    ptrace.set_registers(tid, registers)
            if frozen:
                break
            time.sleep(0.001)
        else:
            raise CannotMeasureError(f"process {pid} was translating all the time")
    _settle_threads(place, pid, states)


def _release_all(process: StoppedProcess, engine: Engine) -> dict[int, ptrace.Registers]:
    new = {}
    for tid in process.tids:
        registers = process.registers[tid].copy()
        if not in_call(registers):
            continue
        native = engine.call("release", tid, registers.rip, registers.gs_base) & 0xFFFFFFFFFFFFFFFF
        if native:
            registers.rip, registers.gs_base = native, 0
            new[tid] = registers
    engine.call("detach")
    return new


def _ledgers(place: Path, pid: int) -> list[Path]:
    found = [path for path in place.iterdir() if path.name.startswith(f"{pid}.")]
    return sorted(found, key=lambda path: int(path.name.split(".")[1]))


@contextmanager
def _threads(place: Path, pid: int) -> Iterator[tuple[mmap.mmap, list[int]]]:
    """The newest ledger of a process, and where the state of each of its threads stands in it."""
    with _ledgers(place, pid)[-1].open("r+b") as file, mmap.mmap(file.fileno(), ledger.BLOCKS) as memory:
        with memoryview(memory) as view:
            count = ledger.header(view).threads
        yield memory, [ledger.THREADS + 64 * index + 4 for index in range(count)]


def _thread_states(place: Path, pid: int) -> list[int]:
    with _threads(place, pid) as (memory, places):
        return [STATE.unpack_from(memory, at)[0] for at in places]


def _settle_threads(place: Path, pid: int, before: list[int]) -> None:
    """Wait until the threads have left, so that nothing changes any more; that they left is no loss to the count."""
    deadline = time.monotonic() + LEAVING
    while ledger.THREAD_RUNNING in _thread_states(place, pid) and time.monotonic() < deadline and not has_ended(pid):
        time.sleep(0.001)
    with _threads(place, pid) as (memory, places):
        for at, state in zip(places, before, strict=False):
            STATE.pack_into(memory, at, state)
