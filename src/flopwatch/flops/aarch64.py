"""What each AArch64 instruction does: the rows of the table, with lanes read off the operands as the decoder library writes them.

The decoder is capstone (the extra `aarch64`), as the one for x86-64 knows no other architecture. Its operands are read as text, in
the notation of the architecture manual, which does not change between its versions; its operand objects do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from flopwatch.errors import CannotMeasureError
from flopwatch.flops.forms import GENERAL_REGISTER, Form, Work
from flopwatch.flops.operations import DType
from flopwatch.flops.table import CountedRow, FreeRow, load_table

WORD = 4  # bytes: the length of every instruction
LEAST_VECTOR_BITS = 128

_BITS = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
_FLOAT = {16: DType.FP16, 32: DType.FP32, 64: DType.FP64}
_INTEGER = {8: DType.INT8, 16: DType.INT16, 32: DType.INT32, 64: DType.INT64}
# v7.4s  v2.s[1]  v2.2h[0]  z3.d  z3  za1.s  za0h.s[w12, #3]  s7; not the w and x registers, immediates or p0/m
_OPERAND = re.compile(
    r"(?<![\w#.])(?:(?P<file>v|z|za)(?P<number>\d*)[hv]?(?:\.(?P<count>\d*)(?P<element>[bhsdq]))?|(?P<scalar>[bhsdq])\d+)(?![\w.])"
)
_PREDICATE = re.compile(r"(?<![\w#.])p[n]?\d+(?:/[mz]|\.[bhsd])?(?![\w.])")


class Operand(NamedTuple):
    """A vector, tile or scalar floating-point register as it is written: lanes of how many bits each."""

    lanes: int
    bits: int


def instructions(code: bytes, scalable_bits: int = LEAST_VECTOR_BITS) -> Iterator[tuple[int, Form, bool]]:
    """Byte offset, form and "has a governing predicate" of each instruction; words that are none are unknown by their bytes.

    CannotMeasureError if the decoder is not installed; ValueError if scalable vectors cannot have that length.
    """
    if scalable_bits < LEAST_VECTOR_BITS or scalable_bits % LEAST_VECTOR_BITS:
        raise ValueError(f"a scalable vector has a multiple of {LEAST_VECTOR_BITS} bits, not {scalable_bits}")
    for offset in range(0, len(code), WORD):
        word = code[offset : offset + WORD]
        text = _disassemble(word)
        if text is None:
            yield offset, Form(word.hex(" "), vector=True), False
        else:
            yield offset, form_of(*text, scalable_bits), _PREDICATE.search(text[1]) is not None


@lru_cache(maxsize=1 << 16)
def form_of(mnemonic: str, operands: str, scalable_bits: int = LEAST_VECTOR_BITS) -> Form:
    """What an instruction does, by its disassembly: "fmla" and "v0.4s, v1.4s, v2.s[1]"."""
    row = _rows().get(mnemonic)
    if not touches_vector_registers(operands) and not (row and not operands):
        return Form(mnemonic, False, reason=GENERAL_REGISTER)
    if isinstance(row, FreeRow):
        return Form(mnemonic, True, reason=row.reason)
    if isinstance(row, CountedRow):
        return Form(mnemonic, True, work=_work(row, operands_of(operands, scalable_bits), scalable_bits))
    return Form(mnemonic, True)


def touches_vector_registers(operands: str) -> bool:
    """Whether an operand is a vector, scalar floating-point, predicate or tile register."""
    return _OPERAND.search(operands) is not None or _PREDICATE.search(operands) is not None


def operands_of(operands: str, scalable_bits: int = LEAST_VECTOR_BITS) -> list[Operand]:
    """The vector, tile and scalar registers of an instruction, without its predicates; an element of a vector is one lane."""
    found = []
    for match in _OPERAND.finditer(operands):
        if match["scalar"]:
            found.append(Operand(1, _BITS[match["scalar"]]))
        elif match["element"] is None:
            found.append(Operand(1, scalable_bits))
        elif match["count"]:
            found.append(Operand(int(match["count"]), _BITS[match["element"]]))
        else:
            bits = _BITS[match["element"]]
            # "z2.s[1]" is repeated over the whole vector, "v2.s[1]" is one number; neither says how many lanes there are.
            alone = match["file"] == "v" or operands[match.end() : match.end() + 1] == "["
            found.append(Operand(1 if alone else scalable_bits // bits, bits))
    return found


@cache
def _rows() -> Mapping[str, CountedRow | FreeRow]:
    return load_table("aarch64").by_mnemonic()


def _work(row: CountedRow, operands: list[Operand], scalable_bits: int) -> Work | None:
    """None for operands that the row did not expect, so that the instruction is unknown."""
    if len(operands) < 2:
        return None
    result, sources = operands[0], operands[1:]
    dtype = row.dtype or (_FLOAT if row.elements == "float" else _INTEGER).get(sources[0].bits)
    if dtype is None:
        return None
    if row.lanes == "result":
        lanes = result.lanes
    elif row.lanes == "source":
        lanes = max(each.lanes for each in sources)
    elif row.lanes == "tile":
        # Outer products: as many rows and columns as a vector has results, each result a sum over what fits beside it.
        lanes = (scalable_bits // result.bits) ** 2 * (result.bits // sources[0].bits)
    else:
        return None
    return Work(row.operation, dtype, lanes * row.factor, row.times, 1)


@cache
def _decoder() -> Any:
    try:
        import capstone
    except ImportError as error:
        raise CannotMeasureError(
            "AArch64 instructions cannot be read.",
            seen="Their decoder, capstone, is not installed.",
            todo="pip install 'flopwatch[aarch64]'",
        ) from error
    architecture = getattr(capstone, "CS_ARCH_AARCH64", None) or capstone.CS_ARCH_ARM64  # renamed in version 6
    return capstone.Cs(architecture, capstone.CS_MODE_LITTLE_ENDIAN)


@lru_cache(maxsize=1 << 16)
def _disassemble(word: bytes) -> tuple[str, str] | None:
    for _, _, mnemonic, operands in _decoder().disasm_lite(word, 0):
        return mnemonic, operands
    return None
