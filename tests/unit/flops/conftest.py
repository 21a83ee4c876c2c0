"""An assembler for single instructions, so that the tests say which form they mean instead of listing bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import iced_x86
import pytest
from iced_x86 import Encoder, Instruction, OpKind, Register, RoundingControl

from flopwatch.flops.forms import code_info

KIND_NAMES = {value: name for name, value in vars(iced_x86.OpCodeOperandKind).items() if name.isupper()}
# Any register of the class will do, but a few forms want all their registers to differ.
FIRST = {
    "XMM": Register.XMM0,
    "YMM": Register.YMM0,
    "ZMM": Register.ZMM0,
    "XMMP3": Register.XMM4,
    "ZMMP3": Register.ZMM4,
    "TMM": Register.TMM0,
    "MM": Register.MM0,
    "K": Register.K2,
    "KP1": Register.K2,
    "R32": Register.EAX,
    "R64": Register.RAX,
    "R16": Register.AX,
}
GROUPS_OF_FOUR = ("XMMP3", "ZMMP3")


def assemble_form(
    name: str, *, mask: int = 0, zeroing: bool = False, broadcast: bool = False, rounding: bool = False
) -> bytes:
    """The bytes of a form, by its name in the decoder library; with registers, except where there must or shall be memory.

    KeyError or ValueError for a handful of forms with operands that no test needs.
    """
    code = getattr(iced_x86.Code, name)
    instruction = Instruction()
    instruction.code = code
    for position, kind in enumerate(code_info(code).op_kinds()):
        _set_operand(instruction, position, KIND_NAMES[kind], broadcast)
    if mask:
        instruction.op_mask = cast(Any, Register.K0 + mask)
    instruction.zeroing_masking = zeroing
    instruction.is_broadcast = broadcast
    if rounding:
        instruction.rounding_control = RoundingControl.ROUND_TO_NEAREST
    encoder = Encoder(64)
    encoder.encode(instruction, 0)
    return encoder.take_buffer()


def _set_operand(instruction: Instruction, position: int, kind: str, broadcast: bool) -> None:
    first = kind.split("_")[0]
    if first in ("MEM", "SIBMEM") or (broadcast and kind.endswith("_OR_MEM")):
        instruction.set_op_kind(position, OpKind.MEMORY)
        instruction.memory_base = Register.RBX
        if "VSIB" in kind:
            instruction.memory_index = {"X": Register.XMM3, "Y": Register.YMM3, "Z": Register.ZMM3}[kind[-1]]
        elif first == "SIBMEM":
            instruction.memory_index = Register.RCX
    elif kind == "IMM8" or kind == "IMM4_M2Z":
        instruction.set_op_kind(position, OpKind.IMMEDIATE8)
    elif kind in ("ST0", "STI_OPCODE"):
        instruction.set_op_kind(position, OpKind.REGISTER)
        instruction.set_op_register(position, Register.ST0 if kind == "ST0" else Register.ST1)
    else:
        instruction.set_op_kind(position, OpKind.REGISTER)
        offset = 0 if first in GROUPS_OF_FOUR else position
        instruction.set_op_register(position, cast(Any, FIRST[first] + offset))


@pytest.fixture(scope="session")
def assemble() -> Callable[..., bytes]:
    """`assemble(form, mask=0, zeroing=False, broadcast=False, rounding=False)` gives the bytes of one instruction."""
    return assemble_form
