"""Which library and which function an address of a process belongs to: ELF symbol tables, and a JIT's own name table."""

from __future__ import annotations

import ctypes
import os
import struct
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from flopwatch.counters import Region

RUN_TIME_CODE = "[run-time code]"
UNMAPPED = "[unmapped since]"
NO_SYMBOL = "[no symbol]"

SHT_SYMTAB, SHT_DYNSYM, PT_LOAD = 2, 11, 1
SYMBOL = struct.Struct("<IBBHQQ")  # name, kind and binding, visibility, section, address, size
# For each value of the byte that holds kind and binding, whether it is of that kind.
FUNCTIONS = bytes(info & 15 in (2, 10) for info in range(256))  # functions, indirect ones too
LABELS = bytes(info & 15 == 0 for info in range(256))  # assembly often says no more
MAX_NAME = 4096  # template names can be longer than any use of them


class Place(NamedTuple):
    """Where an address lies; `library` is a path, or a name in brackets for memory without a file."""

    library: str
    symbol: str


class Symbols:
    """Resolves addresses of one process image, from its memory regions and the name table of its run-time code."""

    def __init__(self, regions: Sequence[Region], jit_map: str = "") -> None:
        self._regions = sorted(regions, key=lambda region: region.start)
        self._starts = [region.start for region in self._regions]
        self._jit = _JitNames(jit_map)

    def resolve(self, address: int) -> Place:
        """The library and the function of an address; names in brackets say what is not known."""
        index = bisect_right(self._starts, address) - 1
        region = self._regions[index] if index >= 0 and address < self._regions[index].end else None
        if region is None or _is_run_time_memory(region.path):
            name = self._jit.find(address)
            library = RUN_TIME_CODE if name or region else UNMAPPED
            return Place(library, name or library)
        path = region.path.removesuffix(" (deleted)")
        if path.startswith("["):
            return Place(path, NO_SYMBOL)
        return Place(path, _image(path).find(address - region.start + region.offset) or NO_SYMBOL)


def _is_run_time_memory(path: str) -> bool:
    return not path or path.startswith(("[heap", "[anon", "[stack", "//anon", "/memfd:", "/dev/zero"))


class _JitNames:
    """The names that a JIT gave to its code; memory that is used again has the latest name."""

    def __init__(self, text: str) -> None:
        self._code: dict[int, tuple[int, str]] = {}
        for line in text.splitlines():
            words = line.split(maxsplit=2)
            try:
                self._code[int(words[0], 16)] = (int(words[1], 16), words[2])
            except (IndexError, ValueError):
                continue  # a line cut short when the program died
        self._starts = sorted(self._code)

    def find(self, address: int) -> str:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        start = self._starts[index]
        size, name = self._code[start]
        return demangle(name) if address < start + size else ""


def read_jit_map(pid: int, since: float) -> str:
    """The name table that a JIT of process `pid` wrote for perf, if it is ours and not older than `since` (epoch seconds)."""
    path = Path(f"/tmp/perf-{pid}.map")  # the place is perf's convention
    try:
        status = path.stat()
        if status.st_uid not in (os.geteuid(), 0) or status.st_mtime < since:
            return ""
        return path.read_text(errors="replace")
    except OSError:
        return ""


class _Table:
    """An ELF symbol table, by address. Large libraries have hundreds of thousands of symbols, of which a measurement
    needs some dozens: names are read when they are asked for, and all that is done to every entry is done in C.
    """

    def __init__(self, entries: bytes, names: bytes, kinds: bytes) -> None:
        self._entries = entries[: len(entries) - len(entries) % SYMBOL.size]
        self._names = names
        numbers = self._entries[4 :: SYMBOL.size].translate(kinds)
        values = memoryview(self._entries).cast("Q")[1::3].tolist()
        self._numbers = dict(zip(compress(values, numbers), compress(range(len(values)), numbers), strict=True))
        self._numbers.pop(0, None)  # symbols that are defined elsewhere
        self._starts = sorted(self._numbers)

    def find(self, address: int, *, covering: bool) -> str:
        """The symbol at an address; with `covering`, only if it says that it reaches as far."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        start = self._starts[index]
        name, *_, size = SYMBOL.unpack_from(self._entries, self._numbers[start] * SYMBOL.size)
        if address >= start + size and (covering or size):
            return ""
        return demangle(self._names[name : self._names.find(b"\0", name)].decode(errors="replace"))


class _Image:
    """The symbols of one ELF file, by offset in the file."""

    def __init__(self, path: str) -> None:
        self._segments: list[tuple[int, int, int]] = []
        self._tables: tuple[bytes, bytes] | None = None
        try:
            with Path(path).open("rb") as file:
                self._read(file.fileno())
        except (OSError, struct.error, IndexError, ValueError, OverflowError, MemoryError):
            self._tables = None  # gone, or no ELF file: its code has no names

    @cached_property
    def _functions(self) -> _Table:
        return self._table(FUNCTIONS)

    @cached_property
    def _labels(self) -> _Table:
        return self._table(LABELS)

    def _table(self, kinds: bytes) -> _Table:
        entries, names = self._tables or (b"", b"")
        return _Table(entries, names, kinds)

    def find(self, offset: int) -> str:
        for start, end, base in self._segments:
            if start <= offset < end:
                address = offset - start + base
                # Labels within functions must not break these up; but assembly may have nothing else.
                found = self._functions.find(address, covering=True) or self._labels.find(address, covering=False)
                return found or self._functions.find(address, covering=False)
        return ""

    def _read(self, file: int) -> None:
        head = os.pread(file, 64, 0)
        if head[:6] != b"\x7fELF\x02\x01":
            return
        segment_table, section_table = struct.unpack_from("<QQ", head, 32)
        segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
        table = os.pread(file, segment_size * segment_count, segment_table)
        for index in range(segment_count):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", table, index * segment_size)
            if kind == PT_LOAD:
                self._segments.append((offset, offset + size, address))
        table = os.pread(file, section_size * section_count, section_table)
        sections = [struct.unpack_from("<IIQQQQI", table, index * section_size) for index in range(section_count)]
        # The full table has static functions too; a stripped library only has the names that it exports.
        wanted = {section[1]: section for section in sections if section[1] in (SHT_SYMTAB, SHT_DYNSYM)}
        section = wanted.get(SHT_SYMTAB) or wanted.get(SHT_DYNSYM)
        if section is None:
            return
        strings = sections[section[6]]
        self._tables = os.pread(file, section[5], section[4]), os.pread(file, strings[5], strings[4])


@lru_cache(maxsize=256)
def _image(path: str) -> _Image:
    return _Image(path)


@lru_cache(maxsize=1)
def _demangler() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
        library.__cxa_demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return library
    except (OSError, AttributeError):
        return None


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """A C++ name as its author wrote it, where the C++ run-time library is installed; any other name unchanged."""
    if not name.startswith("_Z") or (library := _demangler()) is None:
        return name
    status = ctypes.c_int()
    pointer = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not pointer:
        return name
    try:
        return ctypes.string_at(pointer).decode(errors="replace")[:MAX_NAME]
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(pointer))
