"""What each x86-64 instruction form does: the rows of the table, with lanes taken from the operands that the decoder library names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, cast

from iced_x86 import (
    Code,
    DecoderOptions,
    Instruction,
    MemorySize,
    MemorySizeInfo,
    Mnemonic,
    OpCodeInfo,
    OpCodeOperandKind,
)

from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.table import CountedRow, FreeRow, load_table

GENERAL_REGISTER = "general register"


class Work(NamedTuple):
    """What one execution of a form does: `times` instructions of `lanes` lanes; a mask bit switches `lanes_per_mask_bit`."""

    operation: Operation
    dtype: DType
    lanes: int
    times: int
    lanes_per_mask_bit: int

    @property
    def mask_bits(self) -> int:
        """How many bits of a mask register, counted from the lowest, switch lanes of this form; the others mean nothing."""
        return self.lanes // self.lanes_per_mask_bit


@dataclass(frozen=True, slots=True)
class Form:
    """The answer for one instruction form: it has `work`, or is free for a `reason`, or is unknown and has neither.

    `vector` tells whether it works on vector, mask, tile, MMX or x87 registers; all others are free.
    """

    mnemonic: str
    vector: bool
    work: Work | None = None
    reason: str = ""


def _constants(module: ModuleType) -> dict[str, int]:
    # The decoder library's enums are modules of integers.
    return {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}


_MNEMONICS = {value: name.lower() for name, value in _constants(Mnemonic).items()}
_OPERAND_KINDS = {value: name for name, value in _constants(OpCodeOperandKind).items()}
_REGISTER_BITS = {"XMM": 128, "XMMP3": 128, "YMM": 256, "ZMM": 512, "ZMMP3": 512, "MM": 64}
_OTHER_REGISTERS = frozenset(("TMM", "K", "KP1", "ST0", "STI"))
_ELEMENT_DTYPES: dict[int, DType] = {
    MemorySize.FLOAT16: DType.FP16,
    MemorySize.BFLOAT16: DType.BF16,
    MemorySize.FLOAT32: DType.FP32,
    MemorySize.FLOAT64: DType.FP64,
    MemorySize.FLOAT80: DType.X87,
}


def all_codes() -> dict[str, int]:
    """Every instruction form that the decoder library knows, by its name there."""
    return {name: value for name, value in _constants(Code).items() if value}


def code_info(code: int) -> OpCodeInfo:
    """The decoder library's facts about one of its codes."""
    return OpCodeInfo(cast(Any, code))


def needs_coprocessor(info: OpCodeInfo) -> bool:
    """Whether a form exists on an early coprocessor only, so that it is never decoded."""
    return info.decoder_option == DecoderOptions.KNC


def touches_vector_registers(info: OpCodeInfo) -> bool:
    """Whether an operand of a form is a vector, mask, tile, MMX or x87 register, or memory addressed by a vector."""
    return any(
        kind.split("_")[0] in _REGISTER_BITS or kind.split("_")[0] in _OTHER_REGISTERS or "VSIB" in kind
        for kind in _operands(info)
    )


@cache
def form_of(code: int) -> Form:
    """What a form (one of the decoder library's codes) does."""
    info = code_info(code)
    mnemonic = _MNEMONICS[info.mnemonic]
    touches = touches_vector_registers(info)
    if needs_coprocessor(info):
        return Form(mnemonic, touches, reason=load_table("x86_64").coprocessor)
    row = None if _is_string(code) else _rows().get(mnemonic)
    if isinstance(row, FreeRow):
        return Form(mnemonic, True, reason=row.reason)
    if isinstance(row, CountedRow):
        return Form(mnemonic, True, work=_work(row, info))
    return Form(mnemonic, True) if touches else Form(mnemonic, False, reason=GENERAL_REGISTER)


@cache
def _rows() -> Mapping[str, CountedRow | FreeRow]:
    return load_table("x86_64").by_mnemonic()


def _operands(info: OpCodeInfo) -> list[str]:
    return [_OPERAND_KINDS[kind] for kind in info.op_kinds()]


def _is_string(code: int) -> bool:
    # "movsd" and "cmpsd" are names of string instructions too, and those touch no vector register.
    instruction = Instruction()
    instruction.code = cast(Any, code)
    return instruction.is_string_instruction


def _work(row: CountedRow, info: OpCodeInfo) -> Work | None:
    memory = MemorySizeInfo(info.memory_size)
    dtype = row.dtype or _ELEMENT_DTYPES.get(memory.element_type)
    if dtype is None:
        return None
    lane_bits = row.lane_bits or dtype.bits
    if row.lanes == "operand":
        lanes = memory.element_count
    elif row.lanes == "register":
        lanes = max(_REGISTER_BITS.get(kind.split("_")[0], 0) for kind in _operands(info)) // lane_bits
    elif isinstance(row.lanes, int):
        lanes = row.lanes
    else:
        raise ValueError(f"x86_64: lanes cannot be by {row.lanes}: {row.names}")
    return Work(row.operation, dtype, lanes, row.times, (row.mask_bits or lane_bits) // lane_bits)
