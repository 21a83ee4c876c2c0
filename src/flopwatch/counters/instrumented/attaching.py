"""Count in a process that is running already, and leave it running.

Every thread is stopped where it is, gets a context of the engine, and goes on translated at the very next instruction.
At the end every thread is stopped again and told to leave the translation; the program goes on natively.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flopwatch.counters import CommandResult, ProcessImage
from flopwatch.counters.instrumented import commands, injection, ledger, ptrace
from flopwatch.counters.instrumented.injection import Caller, Engine
from flopwatch.counters.instrumented.memory import Memory
from flopwatch.counters.instrumented.stopping import Gone, StoppedProcess, has_ended, in_call, status, stopped
from flopwatch.errors import CannotMeasureError, FlopwatchError, UsageError

BUSY, OUT_OF_MEMORY, NO_LEDGER, NO_FILTER = -16, -12, -13, -2
CODE_64 = 0x33  # the code segment of 64-bit programs
FREEZING = 500  # tries to find no thread in the middle of a translation
LEAVING = 2.0  # seconds in which threads leave the translation
STATE = struct.Struct("<I")


def run(pid: int, wait: Callable[[], bool]) -> CommandResult:
    """Follow process `pid` and what it starts while `wait()` blocks, and return what they executed.

    Raises UsageError if it has ended, CannotMeasureError if it cannot be followed; it goes on in any case.
    """
    interrupted = False
    reasons: list[str] = []
    with commands.folder() as place:
        _check(pid, place)
        with _undisturbed():
            try:
                reasons += _begin(pid, place)
            except (Gone, ProcessLookupError) as error:
                raise UsageError(f"Process {pid} has ended already.") from error
        try:
            interrupted = wait()
        finally:
            with _undisturbed():
                reasons += _end_all(pid, place)
        found, hidden = commands.read(place)
    return CommandResult(0, 0, tuple(_by_exec(image, pid) for image in found), hidden, tuple(reasons), interrupted)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits: a program whose tracer ends in the middle of a call would be lost."""
    waiting = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check(pid: int, place: Path) -> None:
    """Refuse what cannot work, and make the folder one that the program can write to."""
    fields = status(pid)
    if not fields or has_ended(pid):
        raise UsageError(f"Process {pid} has ended already.")
    own = status(os.getpid())
    if int(fields.get("Seccomp", "0")) == 1 or int(fields.get("Seccomp_filters", "0")) > int(
        own.get("Seccomp_filters", "0")
    ):
        raise CannotMeasureError(
            f"Process {pid} runs in a sandbox (seccomp), which may end it for the system calls that counting needs.",
            todo="Start it without its sandbox.",
        )
    user, group = (int(fields[key].split()[1]) for key in ("Uid", "Gid"))
    if os.geteuid() == 0 and user != 0:
        engine = place / "engine.so"
        copied = engine.resolve().read_bytes()
        engine.unlink()
        engine.write_bytes(copied)
        for path in (place, *place.iterdir()):
            os.chown(path, user, group)
            path.chmod(0o700)
    try:
        same = os.path.samefile(f"/proc/{pid}/root{place}", place)
    except OSError:
        same = False
    if not same:
        raise CannotMeasureError(
            f"Process {pid} sees other files than flopwatch does: it lives in a container.",
            todo="Run flopwatch inside that container.",
        )


def _begin(pid: int, place: Path) -> list[str]:
    reasons = []
    with stopped(pid) as process, _memory(pid) as memory:
        if process.late:
            raise CannotMeasureError(
                f"Process {pid} could not be stopped.",
                seen=f"Thread {min(process.late)} waits inside the system and cannot be woken.",
                todo="Try again later.",
            )
        with _engine(process, memory, _path(place)) as (caller, engine):
            new = _adopt_all(process, engine, place)
            injection.unload_scratch(caller, engine)
        for tid, registers in new.items():
            ptrace.set_registers(tid, registers)
        lost = len(process.tids) - len(new)
        if lost:
            reasons.append(f"{lost} of {len(process.tids)} threads of process {pid} could not be followed")
    return reasons


def _path(place: Path) -> Path:
    """The engine's file as the program can open it: ours, or the copy for another user."""
    return (place / "engine.so").resolve()


@contextmanager
def _memory(pid: int) -> Iterator[Memory]:
    memory = Memory(pid)
    try:
        yield memory
    finally:
        memory.close()


@contextmanager
def _engine(process: StoppedProcess, memory: Memory, path: Path) -> Iterator[tuple[Caller, Engine]]:
    with injection.borrow(process.tids[0], memory) as caller:
        yield caller, injection.load(caller, path)


def _adopt_all(process: StoppedProcess, engine: Engine, place: Path) -> dict[int, ptrace.Registers]:
    """Open the ledger and give every thread a context; the registers with which each goes on."""
    # The thread that calls shows the registers of the call; its own are those that it gets back.
    found = {tid: process.registers[tid].copy() for tid in process.tids}
    inside = {tid: bool(engine.call("is_inside", registers.rip)) for tid, registers in found.items()}
    _refuse_strange(process.pid, found, engine)
    failed = engine.call("attach", os.fsencode(place), os.fsencode(place / "engine.so"), not any(inside.values()))
    if failed:
        raise _failure(process.pid, failed)
    new = {}
    try:
        for tid, registers in found.items():
            if engine.call("adopt", tid, registers.rip, registers.gs_base, in_call(registers), engine.answer) == 0:
                registers.gs_base, registers.rip = engine.answers(2)
                new[tid] = registers
    except FlopwatchError:
        engine.call("detach")
        raise
    return new


def _refuse_strange(pid: int, found: dict[int, ptrace.Registers], engine: Engine) -> None:
    for tid, registers in found.items():
        if registers.cs != CODE_64:
            raise CannotMeasureError(f"Process {pid} runs 32-bit code, which cannot be counted.")
        if registers.gs_base and not engine.call("knows", registers.gs_base):
            raise CannotMeasureError(
                f"Process {pid} uses the gs register for itself, and so does counting.",
                seen=f"Thread {tid} has it set; another version of flopwatch may have been there.",
                todo="Start the program under flopwatch instead.",
            )


def _failure(pid: int, code: int) -> FlopwatchError:
    if code == BUSY:
        return CannotMeasureError(
            f"Process {pid} is being counted by flopwatch already.", todo="Wait for that to end, or start it anew."
        )
    causes = {
        OUT_OF_MEMORY: "it has no memory left for the counting tables",
        NO_LEDGER: "it cannot write to our folder for counts",
        NO_FILTER: "it cannot read from our folder",
    }
    return CannotMeasureError(f"Process {pid} cannot be counted: {causes.get(code, f'error {code}')}.")


def _end_all(pid: int, place: Path) -> list[str]:
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
    with _memory(pid) as memory:
        for attempt in range(FREEZING):
            with stopped(pid) as process:
                states = _thread_states(place, pid)
                with _engine(process, memory, _path(place)) as (caller, engine):
                    # Threads at work in the engine itself are given some time to come out of it.
                    quiet = attempt > FREEZING // 10 or not any(map(engine.holds, process.registers.values()))
                    frozen = quiet and engine.call("freeze") == 0
                    new = _release_all(process, engine) if frozen else {}
                    injection.unload_scratch(caller, engine)
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


def _by_exec(image: ProcessImage, pid: int) -> ProcessImage:
    """A program that finds the engine preloaded calls itself spawned, but this process had one before."""
    return replace(image, how="exec") if image.pid == pid and image.how == "spawn" else image
