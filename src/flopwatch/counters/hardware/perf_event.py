"""The kernel's `perf_event_open` interface, and nothing else: the attribute, the calls, the page that counters are read from.

Sources: `include/uapi/linux/perf_event.h` of the kernel and the manual page perf_event_open(2). Nothing here knows what an event
is worth. `Kernel` is what the rest of the counter sees of the kernel, so that a test can play every answer of one.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

# enum perf_type_id; further numbers are given out by the kernel, one for each folder of /sys/bus/event_source/devices.
TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_RAW = 0, 1, 4
FLAG_FD_CLOEXEC = 1 << 3  # Linux 3.14
FORMAT_TOTAL_TIME_ENABLED, FORMAT_TOTAL_TIME_RUNNING = 1 << 0, 1 << 1
# _IO('$', n): direction 0, size 0.
IOC_ENABLE, IOC_DISABLE, IOC_RESET = 0x2400, 0x2401, 0x2403

# Bits of the 64-bit word behind `read_format`, in the order of the header's bit field.
DISABLED, INHERIT, EXCLUDE_KERNEL, EXCLUDE_HV, ENABLE_ON_EXEC = 1 << 0, 1 << 1, 1 << 5, 1 << 6, 1 << 12

# PERF_ATTR_SIZE_VER0 (Linux 2.6.31) ends behind config1, VER1 (2.6.33, config2) behind the next word. Nothing later is needed, and a
# kernel takes every size from VER0 on: it sets what it is not given to zero, and refuses (E2BIG) only bits that it does not know.
ATTR_SIZE_VER1 = 72
_ATTR = struct.Struct(
    "=IIQQQQQIIQQ"
)  # type size config period sample_type read_format flags wakeup bp_type config1 config2
_READ = struct.Struct("=QQQ")  # value, time_enabled, time_running: what read_format asks for, without PERF_FORMAT_GROUP

# The call's number: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (arm64, riscv, loongarch).
_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241, "ppc64le": 319, "s390x": 331}

# struct perf_event_mmap_page: lock at 8, index 12, offset 16, time_enabled 24, time_running 32, capabilities 40, pmc_width 48.
_PAGE = struct.Struct("=IIqQQQH")
_PAGE_LOCK = 8
_CAP_USER_RDPMC = 1 << 2


@dataclass(frozen=True, slots=True)
class Attr:
    """What to count: user space only, unless `kernel` is set; the rest as in the kernel's `struct perf_event_attr`."""

    type: int
    config: int
    config1: int = 0
    disabled: bool = True
    inherit: bool = False
    enable_on_exec: bool = False
    kernel: bool = False

    def packed(self) -> bytes:
        """The attribute as the kernel reads it, 72 bytes."""
        flags = self.disabled * DISABLED | self.inherit * INHERIT | self.enable_on_exec * ENABLE_ON_EXEC
        if not self.kernel:
            flags |= EXCLUDE_KERNEL | EXCLUDE_HV
        reading = FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING
        return _ATTR.pack(self.type, ATTR_SIZE_VER1, self.config, 0, 0, reading, flags, 0, 0, self.config1, 0)


class Value(NamedTuple):
    """What an event has counted, and for how many nanoseconds it was wanted and was on a counter."""

    counted: int
    enabled: int
    running: int


class Page(Protocol):
    """The page that a thread can read its own event from without a system call."""

    def read(self) -> Value | None:
        """The value, or None where the page does not allow it now; only in the thread that the event counts."""

    def close(self) -> None:
        """Unmap the page."""


class Kernel(Protocol):
    """The calls that counting needs; each raises OSError with the kernel's own number."""

    def open(self, attr: Attr, pid: int, cpu: int = -1) -> int:
        """A descriptor of a new event of thread `pid` (0: the calling one) on `cpu` (-1: wherever it runs)."""

    def enable(self, descriptor: int) -> None:
        """Begin to count, in the thread and in all that inherited the event."""

    def disable(self, descriptor: int) -> None:
        """Stop counting."""

    def read(self, descriptor: int) -> Value | None:
        """The value, with what children counted; None if the kernel took the event off its counter for good."""

    def page(self, descriptor: int) -> Page:
        """The page of an event; EINVAL for one that is inherited."""

    def close(self, descriptor: int) -> None:
        """Give the event up."""


class Linux:
    """The kernel that runs here."""

    def open(self, attr: Attr, pid: int, cpu: int = -1) -> int:
        """A descriptor of a new event, closed at exec."""
        number = _NUMBERS.get(platform.machine())
        if number is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        packed = ctypes.create_string_buffer(attr.packed(), ATTR_SIZE_VER1)
        descriptor = int(_libc().syscall(number, packed, pid, cpu, -1, FLAG_FD_CLOEXEC))
        if descriptor < 0:
            found = ctypes.get_errno()
            raise OSError(found, os.strerror(found))
        return descriptor

    def enable(self, descriptor: int) -> None:
        """Begin to count, in the thread and in all that inherited the event."""
        fcntl.ioctl(descriptor, IOC_ENABLE, 0)

    def disable(self, descriptor: int) -> None:
        """Stop counting."""
        fcntl.ioctl(descriptor, IOC_DISABLE, 0)

    def read(self, descriptor: int) -> Value | None:
        """The value; the kernel answers with an end of file for an event in its error state."""
        data = os.read(descriptor, _READ.size)
        return Value._make(_READ.unpack(data)) if len(data) == _READ.size else None

    def page(self, descriptor: int) -> Page:
        """The page of an event."""
        return MappedPage(mmap.mmap(descriptor, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ))

    def close(self, descriptor: int) -> None:
        """Give the event up."""
        os.close(descriptor)


class MappedPage:
    """A mapped page, read as the comment of `struct perf_event_mmap_page` prescribes."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    def read(self) -> Value | None:
        """The value, by `rdpmc`; None where the page does not allow that or the event is on no counter just now."""
        if platform.machine() != "x86_64":
            return None
        while True:
            lock, index, offset, enabled, running, capabilities, width = _PAGE.unpack_from(self._memory, _PAGE_LOCK)
            if not index or not capabilities & _CAP_USER_RDPMC:
                return None
            counter = _rdpmc()(index - 1)
            if _PAGE.unpack_from(self._memory, _PAGE_LOCK)[0] == lock:
                return Value(offset + signed(counter, width), enabled, running)

    def close(self) -> None:
        """Unmap the page."""
        self._memory.close()


def signed(counter: int, width: int) -> int:
    """A counter register of `width` bits as a number with a sign: the kernel starts registers below zero."""
    counter &= (1 << width) - 1
    return counter - (1 << width) if counter >> (width - 1) else counter


def difference(later: int, earlier: int) -> int:
    """`later` - `earlier`, both counted modulo 2**64 as the kernel does."""
    return (later - earlier) & 0xFFFF_FFFF_FFFF_FFFF


def executable(code: bytes) -> mmap.mmap:
    """Memory that holds `code` and may be executed; OSError where the system forbids such memory.

    It is written before it may be executed: that change makes the kernel see to the instruction caches on Arm.
    """
    size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    memory.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _libc().mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC) < 0:
        found = ctypes.get_errno()
        raise OSError(found, os.strerror(found))
    return memory


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


class _Instruction:
    """`rdpmc` as a function; the page with its code stays as long as this does."""

    # mov ecx, edi; rdpmc; shl rdx, 32; or rax, rdx; ret
    CODE = bytes.fromhex("89f9 0f33 48c1e220 4809d0 c3")

    def __init__(self) -> None:
        self._memory = executable(self.CODE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._function = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint32)(start)

    def __call__(self, index: int) -> int:
        return int(self._function(index))


@cache
def _rdpmc() -> _Instruction:
    return _Instruction()
