"""Functions whose cost depends on constants: by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flopwatch.flops.formulas import Work, activations, work
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType

FP32 = Numbers(DType.FP32)
C64 = Numbers(DType.FP32, True)
N = 7


@pytest.mark.parametrize(
    ("exponent", "each"),
    [
        (0, {}),
        (1, {}),
        (2, {"mul": 1}),
        (2.0, {"mul": 1}),
        (3, {"mul": 2}),
        (0.5, {"sqrt": 1}),
        (-0.5, {"sqrt": 1, "div": 1}),
        (-1, {"div": 1}),
        (-2, {"mul": 1, "div": 1}),
        (-3, {"mul": 2, "div": 1}),
        (2.5, {"transcendental": 1}),
        (None, {"transcendental": 1}),
    ],
)
def test_powers(exponent: float | None, each: dict[str, int]) -> None:
    assert activations.power(FP32, N, exponent) == work(FP32, **{name: N * count for name, count in each.items()})


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: activations.scaled_add(FP32, N), work(FP32, add=N)),
        (lambda: activations.scaled_add(FP32, N, -1), work(FP32, add=N)),
        (lambda: activations.scaled_add(FP32, N, 0.5), work(FP32, fma=N)),
        (lambda: activations.multiply_add(FP32, N), work(FP32, fma=N)),
        (lambda: activations.multiply_add(FP32, N, 0.1), work(FP32, fma=N, mul=N)),
        (lambda: activations.divide_add(FP32, N), work(FP32, div=N, add=N)),
        (lambda: activations.divide_add(FP32, N, -0.1), work(FP32, div=N, add=N, mul=N)),
        (lambda: activations.clamp(FP32, N, low=True, high=False), work(FP32, minmax=N)),
        (lambda: activations.clamp(FP32, N, low=True, high=True), work(FP32, minmax=2 * N)),
        (lambda: activations.absolute(FP32, N), Work()),
        (lambda: activations.absolute(C64, N), work(FP32, mul=2 * N, add=N, sqrt=N)),
        (lambda: activations.angle(FP32, N), Work()),
        (lambda: activations.angle(C64, N), work(FP32, transcendental=N)),
        (lambda: activations.phase(FP32, N), Work()),
        (lambda: activations.phase(C64, N), work(FP32, mul=2 * N, add=N, sqrt=N, div=2 * N)),
        (lambda: activations.polar(FP32, N), work(FP32, transcendental=2 * N, mul=2 * N)),
        (lambda: activations.rounded(FP32, N), Work()),
        (lambda: activations.rounded(FP32, N, 2), work(FP32, mul=N, div=N)),
        (lambda: activations.multigamma_log(FP32, N, 3), work(FP32, transcendental=3 * N, add=2 * 3 * N)),
        (lambda: activations.gelu(FP32, N), work(FP32, transcendental=N, add=N, mul=3 * N)),
        (lambda: activations.gelu(FP32, N, tanh=True), work(FP32, transcendental=N, add=2 * N, mul=6 * N)),
        (lambda: activations.elu(FP32, N), work(FP32, transcendental=N, mul=N)),
        (lambda: activations.elu(FP32, N, input_scale=2), work(FP32, transcendental=N, mul=2 * N)),
        (lambda: activations.elu(FP32, N, alpha=1.7, scale=1.05), work(FP32, transcendental=N, mul=2 * N)),
        (lambda: activations.elu_backward(FP32, N), work(FP32, transcendental=N, mul=2 * N)),
        (lambda: activations.elu_backward(FP32, N, from_result=True), work(FP32, add=N, mul=N)),
        (lambda: activations.softplus(FP32, N), work(FP32, transcendental=2 * N)),
        (lambda: activations.softplus(FP32, N, beta=3), work(FP32, transcendental=2 * N, mul=N, div=N)),
        (lambda: activations.logit(FP32, N), work(FP32, transcendental=N, add=N, div=N)),
        (lambda: activations.logit(FP32, N, clamped=True), work(FP32, transcendental=N, add=N, div=N, minmax=2 * N)),
        (lambda: activations.dropout(FP32, N), work(FP32, div=N, mul=N)),
        (lambda: activations.dropout(FP32, N, mask=2), work(FP32, div=2, mul=N)),
        (lambda: activations.dropout_backward(FP32, N), work(FP32, mul=N)),
    ],
)
def test_functions(made: Callable[[], Work], expected: Work) -> None:
    assert made() == expected


def test_selu_is_an_elu_with_a_scale() -> None:
    from_table = activations.elementwise("selu", FP32, N)
    assert activations.elu(FP32, N, alpha=1.67, scale=1.05) == from_table
