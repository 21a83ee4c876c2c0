"""A real program of known arithmetic, made without a compiler: a dynamically linked x86-64 ELF file of two pages."""

from __future__ import annotations

import struct

from flopwatch.flops import DType

ROUNDS = 12_345
EXPECTED = {DType.FP64: ROUNDS * 2, DType.FP32: ROUNDS * 1}
"""addpd has two lanes, mulss one."""

PAGE = 4096
_PHDR = struct.Struct("<IIQQQQQQ")
_DYN = struct.Struct("<QQ")
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_PHDR, _PT_GNU_STACK = 1, 2, 3, 6, 0x6474E551
_R, _W, _X = 4, 2, 1
_DT_NULL, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT = 0, 5, 6, 10, 11

CODE = bytes.fromhex(
    "b9" + ROUNDS.to_bytes(4, "little").hex()  # mov ecx, ROUNDS
    + "0f57c0 0f57c9"  # xorps xmm0, xmm0; xorps xmm1, xmm1
    + "660f58c0 f30f59c9"  # the loop: addpd xmm0, xmm0; mulss xmm1, xmm1
    + "ffc9 75f4"  # dec ecx; jnz to the loop
    + "31ff b8e7000000 0f05"  # exit_group(0)
)  # fmt: skip


def program(loader: str) -> bytes:
    """The program's file; `loader` is the dynamic loader that it asks for."""
    interpreter = loader.encode() + b"\0"
    count = 6
    begin = 64 + count * _PHDR.size
    names = begin + len(interpreter)  # an empty string table, and the one symbol that every table begins with
    symbols = (names + 1 + 7) // 8 * 8
    entry = symbols + 24
    dynamic = [(_DT_STRTAB, names), (_DT_SYMTAB, symbols), (_DT_STRSZ, 1), (_DT_SYMENT, 24), (_DT_NULL, 0)]
    table = b"".join(_DYN.pack(*each) for each in dynamic)
    end = entry + len(CODE)
    headers = [
        (_PT_PHDR, _R, 64, 64, count * _PHDR.size, 8),
        (_PT_INTERP, _R, begin, begin, len(interpreter), 1),
        (_PT_LOAD, _R | _X, 0, 0, end, PAGE),
        (_PT_LOAD, _R | _W, PAGE, PAGE, len(table), PAGE),
        (_PT_DYNAMIC, _R | _W, PAGE, PAGE, len(table), 8),
        (_PT_GNU_STACK, _R | _W, 0, 0, 0, 16),
    ]
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, entry, 64, 0, 0, 64, _PHDR.size, count, 64, 0, 0)
    head += b"".join(
        _PHDR.pack(kind, flags, offset, at, at, size, size, align) for kind, flags, offset, at, size, align in headers
    )
    text = (head + interpreter).ljust(symbols, b"\0") + bytes(24) + CODE
    return text.ljust(PAGE, b"\0") + table
