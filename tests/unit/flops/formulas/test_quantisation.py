"""Quantisation: each formula written out for single numbers, and functions of quantised tensors."""

from __future__ import annotations

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import estimate, quantisation
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, larger, operations, smaller
from tests.unit.flops.formulas.numerics import SINGLE, flop, worth

N, CHANNELS = 24, 4
REAL, BYTES = Array((CHANNELS, 6)), Array((CHANNELS, 6), "quint8")


def test_to_integers_and_back() -> None:
    seen = Counting()
    scale, x = seen.number(0.1), seen.numbers(N)
    inverse = 1 / scale
    integers = [round(float(each * inverse)) for each in x]
    assert operations(quantisation.quantised(SINGLE, N)) == +seen.operations
    seen.operations.clear()
    for each in integers:
        seen.number(each) * scale
    assert operations(quantisation.dequantised(SINGLE, N)) == +seen.operations


def test_fake_quantisation_stays_in_floating_point() -> None:
    seen = Counting()
    scale, zero, x = seen.number(0.1), seen.number(3.0), seen.numbers(N)
    inverse = 1 / scale
    for each in x:
        place = seen.number(round(float(each * inverse))) + zero
        (smaller(larger(place, 0), 255) - zero) * scale
    assert operations(quantisation.fake_quantised(SINGLE, N)) == +seen.operations


@pytest.mark.parametrize("moving", [False, True])
def test_parameters_come_from_the_least_and_the_largest(moving: bool) -> None:
    seen = Counting()
    x = seen.numbers(N)
    low = high = x[0]
    for each in x[1:]:
        low, high = smaller(low, each), larger(high, each)
    if moving:
        old_low, old_high = seen.numbers(2)
        low, high = old_low + (low - old_low) * 0.01, old_high + (high - old_high) * 0.01
    low, high = smaller(low, 0), larger(high, 0)
    scale = (high - low) / 255
    0 - low / scale
    assert operations(quantisation.parameters(SINGLE, N, moving=moving)) == +seen.operations


def test_gradients_of_learnt_scales() -> None:
    seen = Counting()
    scale, zero, x, g = seen.number(0.1), seen.number(3.0), seen.numbers(N), seen.numbers(N)
    inverse = 1 / scale
    scales, zeros = [], []
    for value, gradient in zip(x, g, strict=True):
        exact = value * inverse
        rounded = seen.number(round(float(exact))) + zero
        scales.append(gradient * ((rounded - zero) - exact))
        zeros.append(-gradient * scale)
    for terms in (scales, zeros):
        whole = terms[0]
        for term in terms[1:]:
            whole = whole + term
        whole * 0.5
    assert operations(quantisation.fake_quantised_backward(SINGLE, N)) == +seen.operations


def test_a_scale_for_each_channel_is_inverted_for_each_channel() -> None:
    scales = Array((CHANNELS,))
    whole = worth("aten::quantize_per_tensor", BYTES, self=REAL, scale=0.1, zero_point=0, dtype="quint8")
    apart = worth("aten::quantize_per_channel", BYTES, self=REAL, scales=scales, zero_points=scales, axis=0)
    assert (flop(whole), flop(apart)) == (N + 1, N + CHANNELS)
    several = worth("aten::quantize_per_tensor", BYTES, BYTES, tensors=[REAL, REAL], scales=scales, zero_points=scales)
    assert several == 2 * whole
    dynamic = worth("aten::quantize_per_tensor_dynamic", BYTES, self=REAL, dtype="qint8", reduce_range=False)
    assert dynamic == quantisation.parameters(SINGLE, N) + whole


def test_integers_come_back_by_one_product_and_halves_by_none() -> None:
    assert flop(worth("aten::dequantize", REAL, self=BYTES)) == N
    assert flop(worth("aten::dequantize", REAL, tensors=[BYTES, BYTES])) == 2 * N
    assert isinstance(estimate(Op("aten::dequantize", {"self": Array((N,), "float16")}, (Array((N,)),))), Free)


def test_functions_of_quantised_numbers_are_done_in_single_precision() -> None:
    add = worth("quantized::add", BYTES, qa=BYTES, qb=BYTES, scale=0.1, zero_point=0)
    assert add.tally.flop() == {DType.FP32: N + 3 * N}
    assert add == worth("quantized::add_relu", BYTES, qa=BYTES, qb=BYTES, scale=0.1, zero_point=0)
    assert flop(worth("quantized::mul", BYTES, qa=BYTES, qb=BYTES, scale=0.1, zero_point=0)) == N + 3 * N
    # A sigmoid is an exponential, a sum and a quotient.
    assert flop(worth("quantized::sigmoid", BYTES, qx=BYTES, output_scale=0.1, output_zero_point=0)) == 3 * N + 2 * N
    assert flop(worth("quantized::cat", BYTES, qx=[BYTES, BYTES], dim=0, scale=0.1, zero_point=0)) == 2 * 2 * N
    statistics = Array((CHANNELS,))
    found = worth("quantized::batch_norm2d", BYTES, qx=BYTES, weight=statistics, mean=statistics, var=statistics)
    assert flop(found) == 2 * N + 2 * N + CHANNELS * (3 + 1 + 2)


def test_functions_of_integers_alone_are_free_and_what_data_decide_is_unknown() -> None:
    for name in ("quantized::clamp", "quantized::relu6", "quantized::mul_scalar", "quantized::max_pool2d"):
        assert isinstance(estimate(Op(name, {"qx": BYTES, "qa": BYTES}, (BYTES,))), Free)
    assert estimate(Op("quantized::add_scalar", {"qa": BYTES, "b": 2.0}, (BYTES,))) == Unknown("quantized::add_scalar")


def test_rows_of_bytes_are_scaled_shifted_and_added_up() -> None:
    bags, rows, inner = 2, 7, 5
    made = Array((bags, inner))
    found = worth("quantized::embedding_bag_byte", made, indices=Array((rows,), "int64"), mode=0)
    assert flop(found) == 2 * rows * inner + (rows - bags) * inner


@pytest.mark.torch
def test_observers_are_known_by_the_names_that_pytorch_gives_them() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    x = torch.randn(CHANNELS, 6)
    fake = torch.ao.quantization.FusedMovingAvgObsFakeQuantize()
    names = [op.name for op in calls(fake, x) if "fused_moving" in op.name]
    found = [estimate(op) for op in calls(fake, x) if op.name in names]
    expected = quantisation.parameters(SINGLE, N, moving=True) + quantisation.fake_quantised(SINGLE, N)
    assert found == [expected]
    learnt = calls(torch._fake_quantize_learnable_per_tensor_affine, x, torch.ones(1), torch.zeros(1), 0, 255, 1.0)
    assert [estimate(op) for op in learnt] == [quantisation.fake_quantised(SINGLE, N)]
