"""Blocks: runs, masks, unknown instructions, the breakdown by instruction."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from flopwatch.errors import CannotMeasureError
from flopwatch.events import Block
from flopwatch.flops import ARITHMETIC, Classified, DType, Tally, Unknown, classify, classify_block
from flopwatch.scope import Scope

Assemble = Callable[..., bytes]

FP32_LANES = 512 // 32
RUNS = 1000
NOT_AN_INSTRUCTION = bytes.fromhex("c4e3ff00c0")
NOP = b"\x90"


def block(code: bytes, runs: int = RUNS, active: tuple[tuple[int, int], ...] = ()) -> Block:
    return Block(Scope(), "x86_64", 0x1000, code, runs, active)


def test_a_block_is_its_instructions_times_its_runs(assemble: Assemble) -> None:
    add, fma = assemble("ADDSD_XMM_XMMM64"), assemble("VEX_VFMADD231PD_YMM_YMM_YMMM256")
    move = assemble("VEX_VMOVUPS_YMM_YMMM256")
    done = classify_block(block(NOP + add + move + fma + NOP + fma))
    assert done.tally.flop() == {DType.FP64: RUNS * (1 + 2 * 4 * 2)}
    assert (done.vector_instructions, done.classified, done.coverage) == (4 * RUNS, 4 * RUNS, 1.0)
    assert done.unknown == {} and done.by_instruction == {}


def test_a_block_that_never_ran_did_nothing(assemble: Assemble) -> None:
    done = classify_block(block(assemble("ADDSD_XMM_XMMM64") + NOT_AN_INSTRUCTION, runs=0), by_instruction=True)
    assert (done.tally, done.vector_instructions, done.unknown) == (Tally(), 0, {})


def test_general_code_is_no_vector_code() -> None:
    done = classify_block(block(NOP * 5))
    assert (done.tally, done.vector_instructions, done.coverage) == (Tally(), 0, 1.0)


def test_active_lanes_are_taken_from_the_block(assemble: Assemble) -> None:
    masked = assemble("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", mask=1)
    code = NOP + masked + masked
    on_first, on_second = 3 * RUNS, 16 * RUNS
    done = classify_block(block(code, active=((1, on_first), (1 + len(masked), on_second))))
    assert done.tally.masks_recorded
    assert done.tally.flop() == {DType.FP32: RUNS * 2 * FP32_LANES}
    assert done.tally.flop(lanes="active") == done.tally.flop(ARITHMETIC) == {DType.FP32: on_first + on_second}
    assert done.tally.wasted_lanes() == RUNS * 2 * FP32_LANES - on_first - on_second


def test_one_mask_bit_can_switch_several_products(assemble: Assemble) -> None:
    bf16 = assemble("EVEX_VDPBF16PS_ZMM_K1Z_ZMM_ZMMM512B32", mask=1)
    int8 = assemble("EVEX_VPDPBUSD_ZMM_K1Z_ZMM_ZMMM512B32", mask=1)
    quadruple = assemble("EVEX_V4FMADDPS_ZMM_K1Z_ZMMP3_M128", mask=1)
    complex16 = assemble("EVEX_VFMADDCPH_ZMM_K1Z_ZMM_ZMMM512B32_ER", mask=1)
    lanes = 5
    for code, flop, op in (
        (bf16, {DType.BF16: lanes * 2 * 2}, {}),
        (int8, {}, {DType.INT8: lanes * 4 * 2}),
        (quadruple, {DType.FP32: lanes * 4 * 2}, {}),
        (complex16, {DType.FP16: lanes * 8}, {}),
    ):
        tally = classify_block(block(code, runs=1, active=((0, lanes),))).tally
        assert (tally.flop(lanes="active"), tally.op(lanes="active")) == (flop, op)


def test_an_impossible_mask_is_no_mask(assemble: Assemble) -> None:
    masked = assemble("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", mask=1)
    for active in (-1, RUNS * FP32_LANES + 1):
        tally = classify_block(block(masked, active=((0, active),))).tally
        assert not tally.masks_recorded
        assert tally.flop(ARITHMETIC) == {DType.FP32: RUNS * FP32_LANES}


def test_active_lanes_of_an_unmasked_instruction_are_ignored(assemble: Assemble) -> None:
    tally = classify_block(block(assemble("ADDPS_XMM_XMMM128"), active=((0, 1),))).tally
    assert tally.flop(ARITHMETIC) == {DType.FP32: RUNS * 4}


def test_what_cannot_be_decoded_is_named_and_counted(assemble: Assemble) -> None:
    done = classify_block(block(assemble("ADDPS_XMM_XMMM128") + NOT_AN_INSTRUCTION))
    assert done.unknown == {"c4 e3 ff 00 c0": RUNS}
    assert (done.vector_instructions, done.classified, done.coverage) == (2 * RUNS, RUNS, 0.5)
    assert done.tally.flop() == {DType.FP32: RUNS * 4}


def test_a_single_unknown_and_no_instruction_at_all() -> None:
    assert classify(bytes.fromhex("62f5fd48ffc0")) == Unknown("62 f5 fd 48 ff c0")
    assert classify(b"\x0f") == Unknown("0f")
    with pytest.raises(ValueError):
        classify(b"")


def test_the_address_does_not_matter(assemble: Assemble) -> None:
    code = assemble("ADDPS_XMM_XMMM128")
    assert classify(code) == classify(code, address=0x7FFF_FFFF_F000)


def test_breakdown_by_instruction_sums_to_the_whole(assemble: Assemble) -> None:
    masked = assemble("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", mask=1)
    plain = assemble("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER")
    code = masked + plain + assemble("MULSS_XMM_XMMM32") + assemble("MOVAPS_XMM_XMMM128")
    done = classify_block(block(code, active=((0, RUNS),)), by_instruction=True)
    assert set(done.by_instruction) == {"vaddps", "mulss"}
    assert Tally.total(done.by_instruction.values()) == done.tally
    assert done.by_instruction["vaddps"].flop(ARITHMETIC) == {DType.FP32: RUNS * (1 + FP32_LANES)}
    assert classify_block(block(code, active=((0, RUNS),))).tally == done.tally


def test_total_of_many_blocks(assemble: Assemble) -> None:
    one = classify_block(block(assemble("ADDPS_XMM_XMMM128") + NOT_AN_INSTRUCTION, 2), by_instruction=True)
    other = classify_block(block(assemble("MULSS_XMM_XMMM32"), 3), by_instruction=True)
    both = Classified.total([one, other, Classified()])
    assert both.tally == one.tally + other.tally
    assert both.vector_instructions == 2 * 2 + 3
    assert list(both.unknown.values()) == [2]
    assert both.by_instruction == {"addps": one.tally, "mulss": other.tally}


def test_another_architecture_is_refused() -> None:
    with pytest.raises(CannotMeasureError):
        classify_block(Block(Scope(), "riscv64", 0, b"\0\0\0\0", 1))


def test_a_block_seen_again_is_not_decoded_again(assemble: Assemble) -> None:
    code = assemble("VEX_VFMADD231PS_YMM_YMM_YMMM256") * 20_000
    began = time.perf_counter()
    classify_block(block(code))
    first = time.perf_counter() - began
    began = time.perf_counter()
    for runs in range(100):
        classify_block(block(code, runs))
    assert time.perf_counter() - began < first
