"""Worth of single instructions, worked out by hand as products of named sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flopwatch.flops import ARITHMETIC, PMU, Counted, DType, Free, Key, Operation, Tally, classify

Assemble = Callable[..., bytes]

XMM, YMM, ZMM = 128, 256, 512
FP64, FP32, FP16, BF16 = 64, 32, 16, 16
INT8, INT16, INT64 = 8, 16, 64
SCALAR = 1
FMA = 2
PRODUCT_AND_SUM = 2
COMPLEX_MUL = 4 + 2
COMPLEX_FMA = 4 + 4
TILE_ROWS, TILE_ROW_BITS = 16, 512
M, N = TILE_ROWS, TILE_ROW_BITS // FP32


def tally_of(code: bytes) -> Tally:
    answer = classify(code)
    assert isinstance(answer, Counted)
    return answer.tally


# form, operation, datatype, pmu, arithmetic
FLOATING = [
    # scalar in a vector register
    ("ADDSS_XMM_XMMM32", "add", "fp32", SCALAR, SCALAR),
    ("VEX_VADDSS_XMM_XMM_XMMM32", "add", "fp32", SCALAR, SCALAR),
    ("SUBSD_XMM_XMMM64", "add", "fp64", SCALAR, SCALAR),
    ("VEX_VFMADD231SD_XMM_XMM_XMMM64", "fma", "fp64", SCALAR * FMA, SCALAR * FMA),
    ("EVEX_VFNMSUB132SH_XMM_K1Z_XMM_XMMM16_ER", "fma", "fp16", SCALAR * FMA, SCALAR * FMA),
    ("SQRTSD_XMM_XMMM64", "sqrt", "fp64", SCALAR, SCALAR),
    ("MAXSS_XMM_XMMM32", "minmax", "fp32", SCALAR, 0),
    ("RSQRTSS_XMM_XMMM32", "rcp", "fp32", SCALAR, 0),
    # packed
    ("ADDPS_XMM_XMMM128", "add", "fp32", XMM // FP32, XMM // FP32),
    ("VEX_VMULPD_YMM_YMM_YMMM256", "mul", "fp64", YMM // FP64, YMM // FP64),
    ("EVEX_VDIVPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "div", "fp32", ZMM // FP32, ZMM // FP32),
    ("EVEX_VADDPH_ZMM_K1Z_ZMM_ZMMM512B16_ER", "add", "fp16", ZMM // FP16, ZMM // FP16),
    ("VEX_VFMADD213PS_YMM_YMM_YMMM256", "fma", "fp32", YMM // FP32 * FMA, YMM // FP32 * FMA),
    ("VEX_VFMADDSUB231PD_YMM_YMM_YMMM256", "fma", "fp64", YMM // FP64 * FMA, YMM // FP64 * FMA),
    ("VEX_VFMADDPS_YMM_YMM_YMMM256_YMM", "fma", "fp32", YMM // FP32 * FMA, YMM // FP32 * FMA),
    ("VEX_VFNMSUBSD_XMM_XMM_XMMM64_XMM", "fma", "fp64", SCALAR * FMA, SCALAR * FMA),
    ("EVEX_VMINPD_ZMM_K1Z_ZMM_ZMMM512B64_SAE", "minmax", "fp64", ZMM // FP64, 0),
    ("EVEX_VRCP14PS_ZMM_K1Z_ZMMM512B32", "rcp", "fp32", ZMM // FP32, 0),
    ("EVEX_VRSQRT28PD_ZMM_K1Z_ZMMM512B64_SAE", "rcp", "fp64", ZMM // FP64, 0),
    ("EVEX_VEXP2PS_ZMM_K1Z_ZMMM512B32_SAE", "transcendental", "fp32", ZMM // FP32, ZMM // FP32),
    # four multiply-adds in one instruction
    ("EVEX_V4FMADDPS_ZMM_K1Z_ZMMP3_M128", "fma", "fp32", 4 * ZMM // FP32 * FMA, 4 * ZMM // FP32 * FMA),
    ("EVEX_V4FNMADDSS_XMM_K1Z_XMMP3_M128", "fma", "fp32", 4 * SCALAR * FMA, 4 * SCALAR * FMA),
    # horizontal and alternating: one operation per result lane
    ("HADDPS_XMM_XMMM128", "add", "fp32", XMM // FP32, XMM // FP32),
    ("VEX_VHADDPS_YMM_YMM_YMMM256", "add", "fp32", YMM // FP32, YMM // FP32),
    ("VEX_VHSUBPD_YMM_YMM_YMMM256", "add", "fp64", YMM // FP64, YMM // FP64),
    ("ADDSUBPS_XMM_XMMM128", "add", "fp32", XMM // FP32, XMM // FP32),
    # dot products within 128 bits: n products and n - 1 sums; the PMU has n sums
    ("DPPS_XMM_XMMM128_IMM8", "dpp", "fp32", 4 + 4, 4 + 3),
    ("VEX_VDPPS_YMM_YMM_YMMM256_IMM8", "dpp", "fp32", 2 * (4 + 4), 2 * (4 + 3)),
    ("DPPD_XMM_XMMM128_IMM8", "dpp", "fp64", 2 + 2, 2 + 1),
    # dot products into an accumulator
    ("EVEX_VDPBF16PS_XMM_K1Z_XMM_XMMM128B32", "dot", "bf16", XMM // FP32 * 2 * PRODUCT_AND_SUM, 16),
    ("EVEX_VDPBF16PS_ZMM_K1Z_ZMM_ZMMM512B32", "dot", "bf16", ZMM // FP32 * 2 * PRODUCT_AND_SUM, 64),
    # complex
    ("EVEX_VFMADDCPH_ZMM_K1Z_ZMM_ZMMM512B32_ER", "complex_fma", "fp16", ZMM // (2 * FP16) * COMPLEX_FMA, 128),
    ("EVEX_VFCMADDCPH_XMM_K1Z_XMM_XMMM128B32", "complex_fma", "fp16", XMM // (2 * FP16) * COMPLEX_FMA, 32),
    ("EVEX_VFMULCPH_YMM_K1Z_YMM_YMMM256B32", "complex_mul", "fp16", YMM // (2 * FP16) * COMPLEX_MUL, 48),
    ("EVEX_VFMADDCSH_XMM_K1Z_XMM_XMMM32_ER", "complex_fma", "fp16", SCALAR * COMPLEX_FMA, 8),
    ("EVEX_VFCMULCSH_XMM_K1Z_XMM_XMMM32_ER", "complex_mul", "fp16", SCALAR * COMPLEX_MUL, 6),
    # full tiles
    ("VEX_TDPBF16PS_TMM_TMM_TMM", "tile_dot", "bf16", 2 * M * N * (TILE_ROW_BITS // BF16), 16_384),
    ("VEX_TDPFP16PS_TMM_TMM_TMM", "tile_dot", "fp16", 2 * M * N * (TILE_ROW_BITS // FP16), 16_384),
    ("VEX_TCMMIMFP16PS_TMM_TMM_TMM", "tile_dot", "fp16", 2 * M * N * (TILE_ROW_BITS // (2 * FP16)) * 2, 16_384),
    # x87
    ("FADD_M32FP", "add", "x87", SCALAR, SCALAR),
    ("FSUBRP_STI_ST0", "add", "x87", SCALAR, SCALAR),
    ("FIMUL_M16INT", "mul", "x87", SCALAR, SCALAR),
    ("FDIVR_M64FP", "div", "x87", SCALAR, SCALAR),
    ("FPREM", "div", "x87", SCALAR, SCALAR),
    ("FSQRT", "sqrt", "x87", SCALAR, SCALAR),
    ("FSIN", "transcendental", "x87", SCALAR, SCALAR),
    ("FSINCOS", "transcendental", "x87", 2 * SCALAR, 2 * SCALAR),
    # 3DNow!
    ("D3NOW_PFADD_MM_MMM64", "add", "fp32", 64 // FP32, 64 // FP32),
    ("D3NOW_PFACC_MM_MMM64", "add", "fp32", 64 // FP32, 64 // FP32),
    ("D3NOW_PFRCP_MM_MMM64", "rcp", "fp32", SCALAR, 0),
    ("D3NOW_PFMAX_MM_MMM64", "minmax", "fp32", 64 // FP32, 0),
]


@pytest.mark.parametrize(
    ("form", "operation", "dtype", "pmu", "arithmetic"), FLOATING, ids=[row[0] for row in FLOATING]
)
def test_flop(form: str, operation: str, dtype: str, pmu: int, arithmetic: int, assemble: Assemble) -> None:
    tally = tally_of(assemble(form))
    assert {key.operation for key in tally} == {Operation(operation)}
    assert tally.flop() == tally.flop(PMU) == {DType(dtype): pmu}
    assert tally.flop(ARITHMETIC) == ({DType(dtype): arithmetic} if arithmetic else {})
    assert tally.op() == {}


INTEGER = [
    ("PMADDWD_MM_MMM64", "pair_dot", "int16", 64 // 32 * (2 + 1)),
    ("PMADDWD_XMM_XMMM128", "pair_dot", "int16", XMM // 32 * (2 + 1)),
    ("EVEX_VPMADDUBSW_ZMM_K1Z_ZMM_ZMMM512", "pair_dot", "int8", ZMM // 16 * (2 + 1)),
    ("EVEX_VPDPBUSD_ZMM_K1Z_ZMM_ZMMM512B32", "dot", "int8", ZMM // 32 * 4 * PRODUCT_AND_SUM),
    ("VEX_VPDPBUSD_YMM_YMM_YMMM256", "dot", "int8", YMM // 32 * 4 * PRODUCT_AND_SUM),
    ("VEX_VPDPBSSD_XMM_XMM_XMMM128", "dot", "int8", XMM // 32 * 4 * PRODUCT_AND_SUM),
    ("EVEX_VPDPWSSDS_ZMM_K1Z_ZMM_ZMMM512B32", "dot", "int16", ZMM // 32 * 2 * PRODUCT_AND_SUM),
    ("EVEX_VP4DPWSSD_ZMM_K1Z_ZMMP3_M128", "dot", "int16", 4 * ZMM // 32 * 2 * PRODUCT_AND_SUM),
    ("EVEX_VPMADD52LUQ_ZMM_K1Z_ZMM_ZMMM512B64", "int_mad", "int64", ZMM // INT64 * 2),
    ("VEX_VPMADD52HUQ_YMM_YMM_YMMM256", "int_mad", "int64", YMM // INT64 * 2),
    ("XOP_VPMACSWW_XMM_XMM_XMMM128_XMM", "int_mad", "int16", XMM // INT16 * 2),
    ("XOP_VPMACSDQL_XMM_XMM_XMMM128_XMM", "int_mad", "int32", XMM // 64 * 2),
    ("XOP_VPMADCSWD_XMM_XMM_XMMM128_XMM", "dot", "int16", XMM // 32 * 2 * PRODUCT_AND_SUM),
    ("VEX_TDPBUSD_TMM_TMM_TMM", "tile_dot", "int8", 2 * M * N * (TILE_ROW_BITS // INT8)),
]


@pytest.mark.parametrize(("form", "operation", "dtype", "op"), INTEGER, ids=[row[0] for row in INTEGER])
def test_integer_products_are_op_and_never_flop(
    form: str, operation: str, dtype: str, op: int, assemble: Assemble
) -> None:
    tally = tally_of(assemble(form))
    assert {key.operation for key in tally} == {Operation(operation)}
    assert tally.op() == tally.op(ARITHMETIC) == {DType(dtype): op}
    assert tally.flop() == {}


FREE = [
    ("VEX_VCMPPS_YMM_YMM_YMMM256_IMM8", "compare"),
    ("COMISS_XMM_XMMM32", "compare"),
    ("FCOMI_ST0_STI", "compare"),
    ("VEX_VCVTPH2PS_YMM_XMMM128", "convert"),
    ("VEX_VCVTPS2PH_XMMM128_YMM_IMM8", "convert"),
    ("EVEX_VCVTNE2PS2BF16_ZMM_K1Z_ZMM_ZMMM512B32", "convert"),
    ("VEX_VBCSTNEBF162PS_XMM_M16", "convert"),
    ("ROUNDSD_XMM_XMMM64_IMM8", "round"),
    ("EVEX_VSCALEFPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "exponent"),
    ("VEX_VMOVUPS_YMM_YMMM256", "move"),
    ("VEX_TILELOADD_TMM_SIBMEM", "move"),
    ("FLD_M80FP", "move"),
    ("EVEX_VPTERNLOGD_ZMM_K1Z_ZMM_ZMMM512B32_IMM8", "logic"),
    ("SHUFPS_XMM_XMMM128_IMM8", "shuffle"),
    ("PADDD_XMM_XMMM128", "integer"),
    ("PMULLD_XMM_XMMM128", "integer"),
    ("EVEX_VPOPCNTD_ZMM_K1Z_ZMMM512B32", "integer"),
    ("AESENC_XMM_XMMM128", "crypto"),
    ("VEX_KANDW_KR_KR_KR", "mask"),
    ("VEX_VZEROUPPER", "state"),
    ("VEX_ANDN_R32_R32_RM32", "general register"),
]


@pytest.mark.parametrize(("form", "reason"), FREE, ids=[row[0] for row in FREE])
def test_free(form: str, reason: str, assemble: Assemble) -> None:
    assert classify(assemble(form)) == Free(reason)


VADDPS = "EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER"


def test_broadcast_counts_what_the_element_is_spread_over(assemble: Assemble) -> None:
    assert tally_of(assemble(VADDPS, broadcast=True)).flop() == {DType.FP32: ZMM // FP32}
    complex_form = "EVEX_VFMADDCPH_ZMM_K1Z_ZMM_ZMMM512B32_ER"
    assert tally_of(assemble(complex_form, broadcast=True)).flop() == {DType.FP16: ZMM // (2 * FP16) * COMPLEX_FMA}


def test_rounding_changes_nothing(assemble: Assemble) -> None:
    plain = assemble(VADDPS)
    rounded = assemble(VADDPS, rounding=True)
    assert rounded != plain
    assert tally_of(rounded) == tally_of(plain)
    scalar = "EVEX_VADDSS_XMM_K1Z_XMM_XMMM32_ER"
    assert tally_of(assemble(scalar, rounding=True)).flop() == {DType.FP32: SCALAR}


@pytest.mark.parametrize("zeroing", [False, True])
@pytest.mark.parametrize("mask", range(1, 8))
def test_a_mask_is_flagged(mask: int, zeroing: bool, assemble: Assemble) -> None:
    tally = tally_of(assemble(VADDPS, mask=mask, zeroing=zeroing))
    assert list(tally) == [Key(Operation.ADD, DType.FP32, ZMM // FP32, masked=True)]
    assert not tally.masks_recorded
    assert tally.flop() == tally.flop(lanes="active") == {DType.FP32: ZMM // FP32}


def test_a_masked_scalar_is_one_lane(assemble: Assemble) -> None:
    tally = tally_of(assemble("EVEX_VFMADD231SD_XMM_K1Z_XMM_XMMM64_ER", mask=1))
    assert list(tally) == [Key(Operation.FMA, DType.FP64, 1, masked=True)]
    assert tally.flop() == {DType.FP64: FMA}
