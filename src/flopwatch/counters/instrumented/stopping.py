"""Stop all threads of a process, look at their registers, let them go on as if nothing had been."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flopwatch.counters.instrumented import ptrace
from flopwatch.counters.instrumented.ptrace import Registers
from flopwatch.errors import CannotMeasureError

PATIENCE = 5.0  # seconds for a thread that sleeps where it cannot be woken (vfork, a slow disk)
RESTARTED = {(1 << 64) - code for code in (512, 513, 514, 516)}  # ERESTARTSYS, NOINTR, NOHAND, _RESTARTBLOCK
ENDED_EARLY = (1 << 64) - 4  # EINTR
RESTART_UNLESS_HANDLED = (1 << 64) - 514  # ERESTARTNOHAND
# These end with EINTR when a thread is merely stopped, see signal(7); with a signal under way they would have in any case.
# read, write, accept, sendto, recvfrom, sendmsg, recvmsg, semop, rt_sigtimedwait, io_getevents, semtimedop, epoll_wait,
# epoll_pwait, accept4, recvmmsg, sendmmsg, io_uring_enter, epoll_pwait2
NOT_RESTARTED = {0, 1, 43, 44, 45, 46, 47, 65, 128, 208, 220, 232, 281, 288, 299, 307, 426, 441}
NO_CALL = 0xFFFFFFFFFFFFFFFF  # as orig_rax


class Gone(Exception):
    """The process ended while it was being looked at."""


def in_call(registers: Registers) -> bool:
    """Whether the thread sleeps in a system call, which the kernel will restart when the thread goes on."""
    return registers.orig_rax < 1 << 63 and registers.rax in RESTARTED


class StoppedProcess:
    """The threads of a process, stopped; `late` are those that did not stop in time and go on by themselves."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.tids: list[int] = []
        self.late: set[int] = set()
        self.registers: dict[int, Registers] = {}
        self._seized: set[int] = set()

    def stop(self) -> None:
        """Stop every thread, those that are born meanwhile too. Raises Gone, CannotMeasureError."""
        self.tids, self.late = [], set()
        deadline = time.monotonic() + PATIENCE
        ended: set[int] = set()
        while new := [tid for tid in self._living() if tid not in {*self.tids, *self.late, *ended}]:
            asked = [tid for tid in new if self._can_wake(tid, deadline) and self._ask(tid)]
            for tid in asked:
                if self._wait(tid, deadline):
                    self.tids.append(tid)
            ended.update(tid for tid in new if tid not in {*self.tids, *self.late})
        if not self.tids and not self.late:
            raise Gone
        self.registers = {tid: self._restartable(tid) for tid in self.tids}

    def _restartable(self, tid: int) -> Registers:
        registers = ptrace.registers(tid)
        if registers.rax == ENDED_EARLY and registers.orig_rax in NOT_RESTARTED and not self._has_signal(tid):
            registers.rax = RESTART_UNLESS_HANDLED
            ptrace.set_registers(tid, registers)
        return registers

    def _has_signal(self, tid: int) -> bool:
        fields = status(self.pid, tid)
        waiting, shared, blocked = (int(fields.get(key, "0"), 16) for key in ("SigPnd", "ShdPnd", "SigBlk"))
        return (waiting | shared) & ~blocked != 0

    def _living(self) -> list[int]:
        found = []
        try:
            for name in os.listdir(f"/proc/{self.pid}/task"):
                if not has_ended(self.pid, int(name)):
                    found.append(int(name))
        except (FileNotFoundError, ProcessLookupError) as error:
            raise Gone from error
        return sorted(found)

    def _can_wake(self, tid: int, deadline: float) -> bool:
        """Once traced, a thread that does not stop could not be let go; a parent in vfork is one."""
        while status(self.pid, tid).get("State", "")[:1] == "D":
            if time.monotonic() > deadline:
                self.late.add(tid)
                return False
            time.sleep(0.001)
        return True

    def _ask(self, tid: int) -> bool:
        try:
            if tid not in self._seized:
                ptrace.seize(tid)
                self._seized.add(tid)
            ptrace.interrupt(tid)
            return True
        except OSError as error:
            if error.errno == errno.ESRCH or has_ended(self.pid, tid):
                return False
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> Exception:
        tracer = status(self.pid).get("TracerPid", "0")
        if tracer not in ("0", str(os.getpid())):
            return CannotMeasureError(
                f"Process {self.pid} is being traced by process {tracer}.", todo="End that debugger first."
            )
        return CannotMeasureError(
            f"The system does not let us trace process {self.pid}.",
            seen=f"{error.strerror}.",
            todo="Use sudo; in a container, allow ptrace (docker run --cap-add=SYS_PTRACE).",
        )

    def _wait(self, tid: int, deadline: float) -> bool:
        """Wait until the thread is in the stop that we asked for; a signal that comes first is let through."""
        while True:
            state = wait(tid, deadline)
            if state is None:
                self.late.add(tid)
                return False
            if state == -1:
                self._seized.discard(tid)
                return False
            if state >> 8 == ptrace.EVENT_STOP:
                return True
            number = state & 0xFF
            _try_resume(tid, 0 if number == ptrace.SYSCALL_STOP else number)

    def detach(self) -> None:
        """Let all threads go on, no longer traced; threads that stop late are let go when they do."""
        for tid in self.tids:
            self._let_go(tid)
        self.tids = []
        deadline = time.monotonic() + 1
        for tid in sorted(self.late & self._seized):
            if self._wait(tid, deadline):
                self._let_go(tid)

    def _let_go(self, tid: int) -> None:
        self._seized.discard(tid)
        try:
            ptrace.detach(tid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise


def _try_resume(tid: int, signal: int) -> None:
    try:
        ptrace.resume(tid, signal)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise


def wait(tid: int, deadline: float) -> int | None:
    """The next stop of a traced thread, as event << 8 | signal; -1 if it has ended, None if the deadline passed."""
    pause = 0.0
    while True:
        try:
            found, state = os.waitpid(tid, ptrace.WALL | os.WNOHANG)
        except ChildProcessError:
            return -1
        if found:
            return state >> 8 if os.WIFSTOPPED(state & 0xFFFF) else -1
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(pause + 0.00002, 0.005)


@contextmanager
def stopped(pid: int) -> Iterator[StoppedProcess]:
    """All threads of a process stopped for the time of a block. Raises Gone if it has ended, CannotMeasureError."""
    process = StoppedProcess(pid)
    try:
        process.stop()
        yield process
    finally:
        process.detach()


def status(pid: int, tid: int | None = None) -> dict[str, str]:
    """The fields of /proc/PID/status; empty if the process has ended."""
    path = Path(f"/proc/{pid}/status") if tid is None else Path(f"/proc/{pid}/task/{tid}/status")
    try:
        lines = path.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def has_ended(pid: int, tid: int | None = None) -> bool:
    """Whether a process or one of its threads has ended, whether or not its parent has noticed."""
    if tid is not None:
        return status(pid, tid).get("State", "X")[:1] in "ZX"
    try:
        return all(has_ended(pid, int(name)) for name in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return True
