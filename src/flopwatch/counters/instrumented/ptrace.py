"""The system call ptrace, as it is; nothing here decides anything. Source: ptrace(2), linux/ptrace.h, asm/ptrace.h."""

from __future__ import annotations

import ctypes
import os

SETOPTIONS, CONT, DETACH, SYSCALL = 0x4200, 7, 17, 24
GETREGS, SETREGS, GETSIGINFO = 12, 13, 0x4202
SEIZE, INTERRUPT, GETSIGMASK, SETSIGMASK = 0x4206, 0x4207, 0x420A, 0x420B
O_TRACESYSGOOD = 1
EVENT_STOP = 128
SYSCALL_STOP = 0x85  # SIGTRAP | 0x80, with O_TRACESYSGOOD
WALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

_NAMES = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs"


class Registers(ctypes.Structure):
    """The general registers of a stopped thread (struct user_regs_struct)."""

    _fields_ = [(name, ctypes.c_uint64) for name in _NAMES.split()]

    orig_rax: int
    rax: int
    rdi: int
    rsi: int
    rdx: int
    r10: int
    r8: int
    r9: int
    rip: int
    eflags: int
    rsp: int
    cs: int
    gs_base: int

    def copy(self) -> Registers:
        """The same values in memory of their own."""
        return Registers.from_buffer_copy(self)


def _call(request: int, tid: int, address: int | None = None, data: object = None) -> None:
    ctypes.set_errno(0)
    if _libc.ptrace(request, tid, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def seize(tid: int) -> None:
    """Begin to trace a thread without stopping it. Raises OSError, as all functions here do."""
    _call(SEIZE, tid, None, O_TRACESYSGOOD)


def interrupt(tid: int) -> None:
    """Ask a traced thread to stop."""
    _call(INTERRUPT, tid)


def resume(tid: int, signal: int = 0) -> None:
    """Let a stopped thread go on, with a signal delivered to it."""
    _call(CONT, tid, None, signal)


def resume_to_call(tid: int) -> None:
    """Let a stopped thread go on to the beginning or the end of its next system call."""
    _call(SYSCALL, tid)


def detach(tid: int, signal: int = 0) -> None:
    """Let a stopped thread go on, no longer traced."""
    _call(DETACH, tid, None, signal)


def registers(tid: int) -> Registers:
    """The registers of a stopped thread."""
    found = Registers()
    _call(GETREGS, tid, None, ctypes.byref(found))
    return found


def set_registers(tid: int, values: Registers) -> None:
    """Change the registers of a stopped thread."""
    _call(SETREGS, tid, None, ctypes.byref(values))


def signal_mask(tid: int) -> int:
    """The signals that a stopped thread blocks, bit 0 for signal 1."""
    mask = ctypes.c_uint64()
    _call(GETSIGMASK, tid, 8, ctypes.byref(mask))
    return mask.value


def set_signal_mask(tid: int, mask: int) -> None:
    """Change which signals a stopped thread blocks."""
    _call(SETSIGMASK, tid, 8, ctypes.byref(ctypes.c_uint64(mask)))
