"""Count in a process that is running already, and leave it running.

Every thread is stopped where it is, gets a context of the engine, and goes on translated at the very next instruction.
At the end every thread is stopped again and told to leave the translation; the program goes on natively.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flopwatch.counters import CommandResult, ProcessImage
from flopwatch.counters.instrumented import commands, injection, leaving, ptrace
from flopwatch.counters.instrumented.injection import Engine
from flopwatch.counters.instrumented.leaving import FREEZING
from flopwatch.counters.instrumented.memory import Memory, opened
from flopwatch.counters.instrumented.stopping import Gone, StoppedProcess, has_ended, in_call, status, stopped
from flopwatch.errors import CannotMeasureError, FlopwatchError, UsageError

BUSY, OUT_OF_MEMORY, NO_LEDGER, NO_FILTER = -16, -12, -13, -2
OWNER = "owner"  # the file that names the flopwatch that attached
CODE_64 = 0x33  # the code segment of 64-bit programs


def run(pid: int, wait: Callable[[], bool]) -> CommandResult:
    """Follow process `pid` and what it starts while `wait()` blocks, and return what they executed.

    Raises UsageError if it has ended, CannotMeasureError if it cannot be followed; it goes on in any case.
    """
    interrupted = False
    reasons: list[str] = []
    with commands.folder(executable=True) as place:
        _check(pid, place)
        (place / OWNER).write_text(str(os.getpid()))
        begun = False
        try:
            with _undisturbed():
                reasons += _begin(pid, place)
                begun = True
            interrupted = wait()
        except (Gone, ProcessLookupError) as error:
            raise UsageError(f"Process {pid} has ended already.") from error
        except KeyboardInterrupt:
            interrupted = True
        finally:
            if begun:
                with _undisturbed():
                    reasons += leaving.end_all(pid, place)
        found, hidden, _ = commands.read(place)
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
    for _ in range(FREEZING):
        with stopped(pid) as process, opened(pid) as memory:
            if process.late:
                raise CannotMeasureError(
                    f"Process {pid} could not be stopped.",
                    seen=f"Thread {min(process.late)} waits inside the system and cannot be woken.",
                    todo="Try again later.",
                )
            with injection.engine_in(process.tids[0], memory, place) as engine:
                new = _adopt_all(process, memory, engine, place)
            for tid, registers in (new or {}).items():
                ptrace.set_registers(tid, registers)
            every = len(process.tids)
        if new is not None:
            lost = every - len(new)
            return [f"{lost} of {every} threads of process {pid} could not be followed"] if lost else []
        time.sleep(0.001)
    raise CannotMeasureError(f"Process {pid} was left by a flopwatch that was killed, and translates all the time.")


def _adopt_all(
    process: StoppedProcess, memory: Memory, engine: Engine, place: Path
) -> dict[int, ptrace.Registers] | None:
    """Open the ledger and give every thread a context; the registers with which each goes on.

    None: a flopwatch that was killed has left a thread in the middle of a translation, which has to end first.
    """
    # The thread that calls shows the registers of the call; its own are those that it gets back.
    found = {tid: process.registers[tid].copy() for tid in process.tids}
    inside = {tid: bool(engine.call("is_inside", registers.rip)) for tid, registers in found.items()}
    _refuse_strange(process.pid, found, engine)
    words = os.fsencode(place), os.fsencode(place / "engine.so"), not any(inside.values())
    failed = engine.call("attach", *words)
    if failed == BUSY and (abandoned := _abandoned(memory)):
        if engine.call("freeze"):
            return None
        shutil.rmtree(abandoned, ignore_errors=True)
        engine.call("detach")
        failed = engine.call("attach", *words)
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


def _abandoned(memory: Memory) -> Path | None:
    """The folder of a flopwatch that was killed, if that is what attached to the process."""
    for mapping in memory.mappings():
        folder = Path(mapping.path).parent
        if folder.name.startswith("flopwatch-") and (folder / OWNER).exists():
            return folder if has_ended(int((folder / OWNER).read_text())) else None
    return None


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


def _by_exec(image: ProcessImage, pid: int) -> ProcessImage:
    """A program that finds the engine preloaded calls itself spawned, but this process had one before."""
    return replace(image, how="exec") if image.pid == pid and image.how == "spawn" else image
