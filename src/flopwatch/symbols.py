"""Which library and which function an address of a process belongs to: ELF symbol tables, and a JIT's own name table."""

from __future__ import annotations

import ctypes
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from flopwatch.counters import Region

RUN_TIME_CODE = "[run-time code]"
UNMAPPED = "[unmapped since]"
NO_SYMBOL = "[no symbol]"

SHT_SYMTAB, SHT_DYNSYM, PT_LOAD = 2, 11, 1
CODE_SYMBOLS = {0, 2, 10}  # no type (assembler), function, indirect function
MAX_NAME = 4096  # template names can be longer than any use of them


class Place(NamedTuple):
    """Where an address lies; `library` is a path, or a name in brackets for memory without a file."""

    library: str
    symbol: str


class _Symbol(NamedTuple):
    start: int
    size: int
    name: str


class Symbols:
    """Resolves addresses of one process image, from its memory regions and the name table of its run-time code."""

    def __init__(self, regions: Sequence[Region], jit_map: str = "") -> None:
        self._regions = sorted(regions, key=lambda region: region.start)
        self._starts = [region.start for region in self._regions]
        self._jit = _Table(_read_jit_map(jit_map.splitlines()))

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


class _Table:
    """Symbols sorted by address."""

    def __init__(self, symbols: Iterable[_Symbol]) -> None:
        self._symbols = sorted(symbols)
        self._starts = [symbol.start for symbol in self._symbols]

    def find(self, address: int) -> str:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        symbol = self._symbols[index]
        # Hand-written assembly often has no sizes: such a symbol reaches to the next one.
        return demangle(symbol.name) if not symbol.size or address < symbol.start + symbol.size else ""


def _read_jit_map(lines: Iterable[str]) -> Iterable[_Symbol]:
    latest: dict[int, _Symbol] = {}
    for line in lines:
        words = line.split(maxsplit=2)
        try:
            start, size = int(words[0], 16), int(words[1], 16)
            latest[start] = _Symbol(start, size, words[2])  # memory is used again: the last name holds
        except (IndexError, ValueError):
            continue  # a line cut short when the program died
    return latest.values()


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


class _Image:
    """The symbols of one ELF file, by offset in the file."""

    def __init__(self, path: str) -> None:
        self._segments: list[tuple[int, int, int]] = []
        symbols: list[_Symbol] = []
        try:
            with Path(path).open("rb") as file:
                self._read(file.fileno(), symbols)
        except (OSError, struct.error, IndexError, ValueError, OverflowError, MemoryError):
            symbols = []  # gone, or no ELF file: its code has no names
        self._table = _Table(symbols)

    def find(self, offset: int) -> str:
        for start, end, address in self._segments:
            if start <= offset < end:
                return self._table.find(offset - start + address)
        return ""

    def _read(self, file: int, symbols: list[_Symbol]) -> None:
        head = os.pread(file, 64, 0)
        if head[:6] != b"\x7fELF\x02\x01":
            return
        segment_table, section_table = struct.unpack_from("<QQ", head, 32)
        segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
        entries = os.pread(file, segment_size * segment_count, segment_table)
        for index in range(segment_count):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", entries, index * segment_size)
            if kind == PT_LOAD:
                self._segments.append((offset, offset + size, address))
        entries = os.pread(file, section_size * section_count, section_table)
        sections = [struct.unpack_from("<IIQQQQI", entries, index * section_size) for index in range(section_count)]
        # The full table has static functions too; a stripped library only has the names that it exports.
        for wanted in (SHT_SYMTAB, SHT_DYNSYM):
            for section in sections:
                if section[1] == wanted:
                    names = sections[section[6]]
                    symbols += _read_symbols(os.pread(file, section[5], section[4]), os.pread(file, names[5], names[4]))
            if symbols:
                return


def _read_symbols(table: bytes, names: bytes) -> list[_Symbol]:
    found = []
    usable = len(table) - len(table) % 24
    for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", table[:usable]):
        if value and section and info & 15 in CODE_SYMBOLS:
            end = names.find(b"\0", name)
            found.append(_Symbol(value, size, names[name:end].decode(errors="replace")))
    return found


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
