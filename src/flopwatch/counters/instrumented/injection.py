"""Bring the engine into a stopped process and call its functions there, without the program's loader, locks or stack.

The engine is one shared object without libc whose only relocations are relative, so that a few system calls made in the
name of a stopped thread map it. All memory is written through /proc/PID/mem.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flopwatch.counters.instrumented import ptrace
from flopwatch.counters.instrumented.memory import PAGE, SYSCALL, Memory, SharedObject, page_up, shared_object
from flopwatch.counters.instrumented.stopping import NO_CALL, Gone, wait
from flopwatch.errors import CannotMeasureError

SCRATCH = 1 << 16  # bytes of stack and text for our calls, behind the engine
OPENAT, CLOSE, MMAP, MUNMAP = 257, 3, 9, 11
AT_FDCWD = -100 & 0xFFFFFFFFFFFFFFFF
FAULTS = (4, 5, 7, 8, 11)  # SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV: blocking them would change what they do
BLOCKED = (1 << 64) - 1 - sum(1 << (number - 1) for number in FAULTS)
CALL_SECONDS = 60.0


class Caller:
    """A stopped thread that makes calls for us; its registers, signals and stack are untouched afterwards."""

    def __init__(self, tid: int, memory: Memory) -> None:
        self._tid = tid
        self.memory = memory
        self._gadget = memory.find_call()
        self._registers = ptrace.registers(tid).copy()
        self._registers.eflags &= ~0x500  # direction and single steps
        self._registers.orig_rax = NO_CALL

    def system_call(self, number: int, *arguments: int) -> int:
        """Make one system call; its result, negative for an error."""
        registers = self._registers.copy()
        registers.rip, registers.rax = self._gadget, number
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            setattr(registers, name, value)
        ptrace.set_registers(self._tid, registers)
        self._to_call()
        self._to_call()
        result = ptrace.registers(self._tid).rax
        self._settle()
        return signed(result)

    def call(self, function: int, stack: int, *arguments: int) -> int:
        """Call a function on a stack whose end is `stack`; its result."""
        registers = self._registers.copy()
        registers.rip, registers.rsp = function, (stack & ~15) - 8
        for name, value in zip(("rdi", "rsi", "rdx", "rcx", "r8"), arguments, strict=False):
            setattr(registers, name, value)
        # It returns to the instruction `syscall`: that stops it, and shows its result as a number of a system call.
        self.memory.write(registers.rsp, struct.pack("<Q", self._gadget))
        ptrace.set_registers(self._tid, registers)
        while True:
            self._to_call()
            now = ptrace.registers(self._tid)
            if now.rip == self._gadget + len(SYSCALL):
                break
        result = now.orig_rax
        now.orig_rax = NO_CALL
        ptrace.set_registers(self._tid, now)
        self._settle()
        return signed(result)

    def _to_call(self) -> None:
        while True:
            ptrace.resume_to_call(self._tid)
            state = self._wait()
            if state == ptrace.SYSCALL_STOP:
                return
            if state in FAULTS:
                at = ptrace.registers(self._tid).rip
                raise CannotMeasureError(f"The counting engine failed inside the program (signal {state} at {at:#x}).")

    def _settle(self) -> None:
        """To a stop from which the kernel restarts an interrupted system call, as the first one was."""
        ptrace.interrupt(self._tid)
        while True:
            ptrace.resume(self._tid)
            if self._wait() >> 8 == ptrace.EVENT_STOP:
                return

    def _wait(self) -> int:
        state = wait(self._tid, time.monotonic() + CALL_SECONDS)
        if state is None:
            raise CannotMeasureError("The counting engine did not return inside the program.")
        if state == -1:
            raise Gone
        return state


@contextmanager
def borrow(tid: int, memory: Memory) -> Iterator[Caller]:
    """A stopped thread as a caller, for the time of a block."""
    registers, mask = ptrace.registers(tid), ptrace.signal_mask(tid)
    ptrace.set_signal_mask(tid, BLOCKED)
    try:
        yield Caller(tid, memory)
    finally:
        try:
            ptrace.set_signal_mask(tid, mask)
            ptrace.set_registers(tid, registers)
        except ProcessLookupError:
            pass  # it was killed meanwhile


class Engine:
    """The engine inside a process; its functions are called on a borrowed thread."""

    def __init__(self, caller: Caller, what: SharedObject, base: int, scratch: int) -> None:
        self._caller = caller
        self._what = what
        self._base = base
        self._scratch = scratch

    def holds(self, registers: ptrace.Registers) -> bool:
        """Whether a thread with these registers is at work in the engine's own code."""
        return self._base <= registers.rip < self._base + self._what.bytes

    def call(self, name: str, *arguments: int | bytes) -> int:
        """Call `flopwatch_<name>`; bytes are passed as the address of a copy."""
        at = self.answer + 64
        values = []
        for argument in arguments:
            if isinstance(argument, bytes):
                self._caller.memory.write(at, argument + b"\0")
                values.append(at)
                at += len(argument) + 16 & ~15
            else:
                values.append(argument)
        function = self._base + self._what.symbols[f"flopwatch_{name}"]
        return self._caller.call(function, self._scratch + SCRATCH, *values)

    @property
    def answer(self) -> int:
        """The address of 64 bytes for results."""
        return self._scratch

    def answers(self, count: int) -> tuple[int, ...]:
        """Numbers that the last call left there."""
        return struct.unpack(f"<{count}Q", self._caller.memory.read(self._scratch, 8 * count))


def load(caller: Caller, path: Path) -> Engine:
    """Find the engine in the process, or map it there. Raises CannotMeasureError."""
    what = shared_object(path, path.stat().st_mtime_ns)
    base = caller.memory.find_object(what)
    if base is not None:
        return Engine(caller, what, base, _room(caller, SCRATCH))
    base = _room(caller, what.bytes + SCRATCH)
    scratch = base + what.bytes
    caller.memory.write(scratch, os.fsencode(path) + b"\0")
    descriptor = caller.system_call(OPENAT, AT_FDCWD, scratch, os.O_RDONLY | os.O_CLOEXEC, 0)
    if descriptor < 0:
        caller.system_call(MUNMAP, base, what.bytes + SCRATCH)
        raise CannotMeasureError(
            "The program cannot open the counting engine.",
            seen=f"{path}: {os.strerror(-descriptor)}.",
            todo="It may live in a container or belong to another user: install flopwatch where it can be read there.",
        )
    for segment in what.segments:
        start, skipped = segment.address & -PAGE, segment.address % PAGE
        access = (segment.flags & 4) >> 2 | segment.flags & 2 | (segment.flags & 1) << 2
        size, offset = page_up(skipped + segment.file_bytes), segment.offset - skipped
        _checked(caller.system_call(MMAP, base + start, size, access, 0x12, descriptor, offset))
        if segment.flags & 2:  # behind what the file holds come zeros
            filled = segment.address + segment.file_bytes
            caller.memory.write(base + filled, bytes(page_up(filled) - filled))
    caller.system_call(CLOSE, descriptor)
    for where, addend in what.relocations:
        caller.memory.write(base + where, struct.pack("<Q", base + addend))
    return Engine(caller, what, base, scratch)


@contextmanager
def engine_in(tid: int, memory: Memory, place: Path) -> Iterator[Engine]:
    """The engine in a process, whose stopped thread `tid` makes the calls; `place` holds its file as the program can read it."""
    with borrow(tid, memory) as caller:
        engine = load(caller, (place / "engine.so").resolve())
        yield engine
        caller.system_call(MUNMAP, engine.answer, SCRATCH)


def _room(caller: Caller, size: int) -> int:
    return _checked(caller.system_call(MMAP, 0, size, 3, 0x22, (1 << 64) - 1, 0))


def _checked(result: int) -> int:
    if -4096 < result < 0:
        raise CannotMeasureError(
            "The counting engine could not be loaded into the program.", seen=os.strerror(-result) + "."
        )
    return result


def signed(value: int) -> int:
    """A register as a signed number."""
    return value - (1 << 64) if value >> 63 else value
