"""The memory of another process, and what of the engine's file is needed to map it there by hand."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from flopwatch.counters.instrumented.stopping import Gone
from flopwatch.errors import CannotMeasureError

PAGE = 4096
PT_LOAD, PT_DYNAMIC = 1, 2
DT_SYMTAB, DT_STRTAB, DT_RELA, DT_RELASZ = 6, 5, 7, 8
R_RELATIVE = 8
SYSCALL = b"\x0f\x05"


class Mapping(NamedTuple):
    """A line of /proc/PID/maps."""

    start: int
    end: int
    access: str
    offset: int
    path: str


class Segment(NamedTuple):
    """A PT_LOAD of a shared object."""

    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int


class SharedObject:
    """What of an ELF file is needed to load it by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = data = path.read_bytes()
        table, size, count = struct.unpack_from("<32xQ14xHH", data)
        self.segments: list[Segment] = []
        dynamic = 0, 0
        for at in range(table, table + size * count, size):
            kind, flags, offset, address, _, file_bytes, memory_bytes = struct.unpack_from("<IIQQQQQ", data, at)
            if kind == PT_LOAD:
                self.segments.append(Segment(flags, offset, address, file_bytes, memory_bytes))
            elif kind == PT_DYNAMIC:
                dynamic = offset, file_bytes
        tags = dict(struct.iter_unpack("<QQ", data[dynamic[0] : sum(dynamic)]))
        self.relocations = self._relocations(tags)
        self.symbols = self._symbols(tags)
        self.bytes = max(page_up(segment.address + segment.memory_bytes) for segment in self.segments)

    def _at(self, address: int) -> int:
        """The place in the file of an address."""
        segment = next(s for s in self.segments if s.address <= address < s.address + s.file_bytes)
        return address - segment.address + segment.offset

    def _relocations(self, tags: dict[int, int]) -> list[tuple[int, int]]:
        if DT_RELA not in tags:
            return []
        start = self._at(tags[DT_RELA])
        found = list(struct.iter_unpack("<QQq", self.data[start : start + tags[DT_RELASZ]]))
        if any(kind != R_RELATIVE for _, kind, _ in found):
            raise CannotMeasureError(
                "The counting engine was not built as it must be.", todo="Install flopwatch again."
            )
        return [(where, addend) for where, _, addend in found]

    def _symbols(self, tags: dict[int, int]) -> dict[str, int]:
        # The linker puts the strings right behind the symbols.
        start, names = self._at(tags[DT_SYMTAB]), self._at(tags[DT_STRTAB])
        found = {}
        for at in range(start, names - 23, 24):
            name, value = struct.unpack_from("<I4xQ", self.data, at)
            found[self.data[names + name : self.data.index(b"\0", names + name)].decode()] = value
        return found


@lru_cache(maxsize=2)
def shared_object(path: Path, changed: int) -> SharedObject:
    """The engine's file, read once; `changed` is its time of change."""
    return SharedObject(path)


def page_up(address: int) -> int:
    """The next multiple of the page size."""
    return -(-address // PAGE) * PAGE


class Memory:
    """The memory and the mappings of a process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        """Forget the process."""
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """Bytes from `address`; raises OSError where nothing can be read."""
        return os.pread(self._file, size, address)

    def write(self, address: int, data: bytes) -> None:
        """Change bytes, whatever the protection of their page."""
        if os.pwrite(self._file, data, address) != len(data):
            raise Gone

    def mappings(self) -> list[Mapping]:
        """The lines of its map."""
        found = []
        for line in Path(f"/proc/{self._pid}/maps").read_text(errors="surrogateescape").splitlines():
            fields = line.split(maxsplit=5)
            start, end = (int(part, 16) for part in fields[0].split("-"))
            found.append(Mapping(start, end, fields[1], int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
        return found

    def find_call(self) -> int:
        """The address of a `syscall` instruction, in the vdso if there is one."""
        code = [mapping for mapping in self.mappings() if "x" in mapping.access and mapping.path != "[vsyscall]"]
        for mapping in sorted(code, key=lambda mapping: mapping.path != "[vdso]"):
            for start in range(mapping.start, mapping.end, 1 << 20):
                at = self.read(start, min(1 << 20, mapping.end - start)).find(SYSCALL)
                if at >= 0:
                    return start + at
        raise CannotMeasureError("No system call was found in the program, so that nothing can be done inside it.")

    def find_object(self, what: SharedObject) -> int | None:
        """Where the object is mapped, or None; recognized by its code, which a path or a name would not tell."""
        text = next(segment for segment in what.segments if segment.flags & 1)
        code = what.data[text.offset : text.offset + text.file_bytes]
        for mapping in self.mappings():
            fits = mapping.access[2] == "x" and mapping.end - mapping.start == page_up(text.file_bytes)
            if fits and self.read(mapping.start, len(code)) == code:
                return mapping.start - text.address
        return None


@contextmanager
def opened(pid: int) -> Iterator[Memory]:
    """The memory of a process for the time of a block."""
    memory = Memory(pid)
    try:
        yield memory
    finally:
        memory.close()
