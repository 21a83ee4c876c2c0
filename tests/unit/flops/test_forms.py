"""A walk over every instruction form that the decoder library knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import iced_x86
import pytest
from iced_x86 import CpuidFeature, Instruction, InstructionInfoFactory, RegisterExt

from flopwatch.flops import Counted, DType, Free, Operation, classify
from flopwatch.flops.forms import (
    GENERAL_REGISTER,
    all_codes,
    code_info,
    form_of,
    needs_coprocessor,
    touches_vector_registers,
)

Assemble = Callable[..., bytes]

ALL = all_codes()
KIND_NAMES = {value: name for name, value in vars(iced_x86.OpCodeOperandKind).items() if name.isupper()}
VECTOR_FEATURES = {CpuidFeature.FPU, CpuidFeature.FPU287, CpuidFeature.FPU387, CpuidFeature.MMX, CpuidFeature.AMX_TILE}
REGISTER_BITS = {"XMM": 128, "XMMP3": 128, "YMM": 256, "ZMM": 512, "ZMMP3": 512, "MM": 64}


def uses_vector_state(code: int) -> bool:
    """By the decoder library's other facts: registers used without being operands, and features of the processor."""
    instruction = Instruction()
    instruction.code = cast(Any, code)
    if VECTOR_FEATURES & set(instruction.cpuid_features()):
        return True
    registers = [used.register for used in InstructionInfoFactory().info(instruction).used_registers()]
    return any(
        RegisterExt.is_vector_register(each) or RegisterExt.is_mm(each) or RegisterExt.is_st(each) for each in registers
    )


def register_bits(code: int) -> int:
    return max(REGISTER_BITS.get(KIND_NAMES[kind].split("_")[0], 0) for kind in code_info(code).op_kinds())


def test_the_library_knows_thousands_of_forms() -> None:
    assert len(ALL) > 4000


def test_every_form_is_counted_or_free() -> None:
    unknown = [name for name, code in ALL.items() if form_of(code).work is None and not form_of(code).reason]
    assert unknown == []


def test_every_form_with_a_vector_operand_is_judged_by_the_table() -> None:
    overlooked = [
        name
        for name, code in ALL.items()
        if touches_vector_registers(code_info(code)) and form_of(code).reason == GENERAL_REGISTER
    ]
    assert overlooked == []


def test_no_form_that_uses_vector_state_silently_is_taken_for_general() -> None:
    overlooked = [
        name for name, code in ALL.items() if uses_vector_state(code) and form_of(code).reason == GENERAL_REGISTER
    ]
    assert overlooked == []


def test_string_moves_are_not_taken_for_their_vector_namesakes() -> None:
    assert form_of(ALL["MOVSD_M32_M32"]).reason == GENERAL_REGISTER
    assert form_of(ALL["CMPSD_M32_M32"]).reason == GENERAL_REGISTER
    assert form_of(ALL["MOVSD_XMM_XMMM64"]).reason == "move"
    assert form_of(ALL["CMPSD_XMM_XMMM64_IMM8"]).reason == "compare"


def test_lanes_fill_the_register_or_are_one() -> None:
    half = ("vpmacswd", "vpmacsswd", "vpmacsdql", "vpmacsdqh", "vpmacssdql", "vpmacssdqh")  # every other element
    odd = []
    for name, code in ALL.items():
        work = form_of(code).work
        if work is None or work.lanes == 1 or work.operation is Operation.TILE_DOT:
            continue
        taken = work.lanes * work.operation.parts * work.dtype.bits * (2 if form_of(code).mnemonic in half else 1)
        if taken != register_bits(code):
            odd.append((name, work))
    assert odd == []


def test_datatype_is_in_the_name() -> None:
    """A cross-check only: names are not what the table goes by."""
    suffixes = {
        "ss": DType.FP32,
        "ps": DType.FP32,
        "sd": DType.FP64,
        "pd": DType.FP64,
        "sh": DType.FP16,
        "ph": DType.FP16,
    }
    scalar = ("ss", "sd", "sh")
    for name, code in ALL.items():
        form = form_of(code)
        suffix = form.mnemonic[-2:]
        if form.work is None or suffix not in suffixes or not form.work.dtype.floating or form.mnemonic[0] == "t":
            continue
        if form.mnemonic == "vdpbf16ps" or form.work.dtype is DType.X87:
            continue
        assert form.work.dtype is suffixes[suffix], name
        assert (form.work.lanes == 1) is (suffix in scalar), name


@pytest.mark.parametrize("masked", [False, True])
def test_every_form_means_the_same_when_it_comes_as_bytes(masked: bool, assemble: Assemble) -> None:
    seen = 0
    for name, code in ALL.items():
        info, form = code_info(code), form_of(code)
        if needs_coprocessor(info) or not (info.mode64 and form.vector):
            continue
        if masked and not info.can_use_op_mask_register:
            continue
        try:
            machine_code = assemble(name, mask=1 if masked or info.require_op_mask_register else 0)
        except (KeyError, ValueError):
            continue  # a handful, with operands that the test's assembler does not make
        seen += 1
        answer = classify(machine_code)
        if form.work is None:
            assert answer == Free(form.reason), name
            continue
        assert isinstance(answer, Counted), name
        ((key, count),) = answer.tally.items()
        assert (key.operation, key.dtype, key.lanes) == (form.work.operation, form.work.dtype, form.work.lanes), name
        assert (key.masked, count.instructions) == (masked, form.work.times), name
    assert seen > (1000 if masked else 3000)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", 512 // 32),
        ("EVEX_VADDPD_YMM_K1Z_YMM_YMMM256B64", 256 // 64),
        ("EVEX_VADDPH_ZMM_K1Z_ZMM_ZMMM512B16_ER", 512 // 16),
        ("EVEX_VADDSS_XMM_K1Z_XMM_XMMM32_ER", 1),
        ("EVEX_V4FMADDPS_ZMM_K1Z_ZMMP3_M128", 512 // 32),
        ("EVEX_VFMADDCPH_ZMM_K1Z_ZMM_ZMMM512B32_ER", 512 // (2 * 16)),
        ("EVEX_VDPBF16PS_ZMM_K1Z_ZMM_ZMMM512B32", 512 // 32),
        ("EVEX_VPDPBUSD_XMM_K1Z_XMM_XMMM128B32", 128 // 32),
        ("EVEX_VPMADDUBSW_ZMM_K1Z_ZMM_ZMMM512", 512 // 16),
        ("EVEX_VPMADDWD_ZMM_K1Z_ZMM_ZMMM512", 512 // 32),
    ],
)
def test_mask_bits(name: str, bits: int) -> None:
    work = form_of(ALL[name]).work
    assert work is not None and work.mask_bits == bits
