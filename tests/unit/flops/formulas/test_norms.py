"""Normalisations and their gradients, against loops over numbers that count."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flopwatch.flops.formulas import norms, work
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, Number, added, exp, operations, sqrt

FP32 = Numbers(DType.FP32)
EPS = 1e-5
SMALL = st.integers(1, 4)
YES = st.booleans()


def statistics(row: list[Number]) -> tuple[Any, list[Any], Any]:
    """Mean, differences from it, variance."""
    middle = added(row) / len(row)
    differences = [number - middle for number in row]
    return middle, differences, added(d * d for d in differences) / len(row)


def inverse(variance: Any) -> Any:
    return 1 / sqrt(variance + EPS)


@given(SMALL, SMALL, YES, YES, YES, YES)
def test_batch_norm(channels: int, size: int, training: bool, running: bool, weight: bool, bias: bool) -> None:
    seen = Counting()
    for row in seen.numbers(channels, size):
        w, b, mean, variance, stored_mean, stored_variance = seen.numbers(6)
        if training:
            mean, _, variance = statistics(row)
            if running:
                unbiased = variance / 1.5  # of the sum of squares by n - 1
                _ = stored_mean * 0.9 + mean * 0.1, stored_variance * 0.9 + unbiased * 0.1
        scale = inverse(variance) * w if weight else inverse(variance)
        shift = b - mean * scale if bias else -(mean * scale)
        _ = [number * scale + shift for number in row]
    of = norms.batch_norm(FP32, channels * size, channels, training=training, running=running, weight=weight, bias=bias)
    assert operations(of) == +seen.operations


@given(SMALL, st.integers(2, 5), YES, YES, YES, YES, YES)
def test_batch_norm_backward(
    channels: int, size: int, training: bool, weight: bool, of_input: bool, of_weight: bool, of_bias: bool
) -> None:
    seen = Counting()
    for row, gradients in zip(seen.numbers(channels, size), seen.numbers(channels, size), strict=True):
        w, mean, deviation = seen.numbers(3)
        through = of_input and training
        if not training and (of_weight or of_input):
            deviation = inverse(deviation)
        total = added(gradients) if through or of_bias else None
        if through or of_weight:
            differences = [number - mean for number in row]
            dot: Any = added(g * d for g, d in zip(gradients, differences, strict=True))
        if of_weight:
            _ = dot * deviation
        if through:
            slope = dot * deviation * deviation / size
            offset = total / size
            scale = deviation * w if weight else deviation
            _ = [(g - d * slope - offset) * scale for g, d in zip(gradients, differences, strict=True)]
        elif of_input:
            scale = deviation * w if weight else deviation
            _ = [g * scale for g in gradients]
    mask = of_input, of_weight, of_bias
    of = norms.batch_norm_backward(FP32, channels * size, channels, training=training, weight=weight, mask=mask)
    assert operations(of) == +seen.operations


@given(SMALL, SMALL, YES, YES)
def test_layer_norm(rows: int, size: int, weight: bool, bias: bool) -> None:
    seen = Counting()
    weights, biases = seen.numbers(size), seen.numbers(size)
    for row in seen.numbers(rows, size):
        _, differences, variance = statistics(row)
        scale = inverse(variance)
        for difference, w, b in zip(differences, weights, biases, strict=True):
            normal = difference * scale
            if weight:
                normal = normal * w
            if bias:
                normal = normal + b
    assert operations(norms.layer_norm(FP32, rows * size, rows, weight=weight, bias=bias)) == +seen.operations


@given(SMALL, SMALL, YES, YES, YES, YES)
def test_layer_norm_backward(
    rows: int, size: int, weight: bool, of_input: bool, of_weight: bool, of_bias: bool
) -> None:
    seen = Counting()
    weights = seen.numbers(size)
    every = seen.numbers(rows, size)
    gradients = seen.numbers(rows, size)
    means, scales = seen.numbers(rows), seen.numbers(rows)
    normal = [[None] * size] * rows
    if of_input or of_weight:
        normal = [[(x - m) * s for x in row] for row, m, s in zip(every, means, scales, strict=True)]
    if of_weight:
        for column in range(size):
            added(gradients[row][column] * normal[row][column] for row in range(rows))
    if of_bias:
        for column in range(size):
            added(gradients[row][column] for row in range(rows))
    if of_input:
        for row in range(rows):
            pulled = [g * w for g, w in zip(gradients[row], weights, strict=True)] if weight else gradients[row]
            offset = added(pulled) / size
            slope = added(h * y for h, y in zip(pulled, normal[row], strict=True)) / size
            _ = [(h - offset - y * slope) * scales[row] for h, y in zip(pulled, normal[row], strict=True)]
    of = norms.layer_norm_backward(FP32, rows * size, rows, size, weight=weight, mask=(of_input, of_weight, of_bias))
    assert operations(of) == +seen.operations


@given(SMALL, SMALL, YES)
def test_rms_norm(rows: int, size: int, weight: bool) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        scale = inverse(added(x * x for x in row) / size)
        for x in row:
            _ = x * scale * x if weight else x * scale
    assert operations(norms.rms_norm(FP32, rows * size, rows, weight=weight)) == +seen.operations


@given(SMALL, SMALL, YES, YES, YES)
def test_rms_norm_backward(rows: int, size: int, weight: bool, of_input: bool, of_weight: bool) -> None:
    seen = Counting()
    weights, scales = seen.numbers(size), seen.numbers(rows)
    every, gradients = seen.numbers(rows, size), seen.numbers(rows, size)
    normal = [[x * s for x in row] for row, s in zip(every, scales, strict=True)] if of_input or of_weight else []
    if of_weight:
        for column in range(size):
            added(gradients[row][column] * normal[row][column] for row in range(rows))
    if of_input:
        for row in range(rows):
            pulled = [g * w for g, w in zip(gradients[row], weights, strict=True)] if weight else gradients[row]
            slope = added(h * y for h, y in zip(pulled, normal[row], strict=True)) / size
            _ = [(h - y * slope) * scales[row] for h, y in zip(pulled, normal[row], strict=True)]
    of = norms.rms_norm_backward(FP32, rows * size, rows, size, weight=weight, mask=(of_input, of_weight))
    assert operations(of) == +seen.operations


@given(SMALL, SMALL)
def test_weight_norm_and_its_gradient(rows: int, size: int) -> None:
    seen = Counting()
    for vector, length in zip(seen.numbers(rows, size), seen.numbers(rows), strict=True):
        scale = length / sqrt(added(v * v for v in vector))
        _ = [v * scale for v in vector]
    assert operations(norms.weight_norm(FP32, rows * size, rows)) == +seen.operations
    seen = Counting()
    for vector, gradients in zip(seen.numbers(rows, size), seen.numbers(rows, size), strict=True):
        length, norm = seen.numbers(2)
        of_length = added(h * v for h, v in zip(gradients, vector, strict=True)) / norm
        slope, scale = of_length / norm, length / norm
        _ = [(h - v * slope) * scale for h, v in zip(gradients, vector, strict=True)]
    assert operations(norms.weight_norm_backward(FP32, rows * size, rows)) == +seen.operations


@given(st.integers(1, 6), st.integers(1, 3))
def test_local_response_norm(channels: int, reach: int) -> None:
    seen = Counting()
    line = seen.numbers(channels)
    squares = [x * x for x in line]
    held = 0
    for channel in range(channels):
        window = squares[max(0, channel - reach) : channel + reach + 1]
        held += len(window)
        _ = line[channel] / exp(added(window) * 0.1 + 1.0)
    assert operations(norms.local_response_norm(FP32, channels, held)) == +seen.operations


@given(SMALL, SMALL)
def test_joined_statistics(parts: int, channels: int) -> None:
    seen = Counting()
    for means, inverses, counts in seen.numbers(channels, 3, parts):
        mean: Any = added(n * m for n, m in zip(counts, means, strict=True)) / 8
        terms = []
        for m, i, n in zip(means, inverses, counts, strict=True):
            deviation, offset = 1 / i, m - mean
            terms.append(n * (deviation * deviation - EPS + offset * offset))
        inverse(added(terms) / 8)
    assert operations(norms.joined_statistics(FP32, parts, channels)) == +seen.operations


def test_layer_norm_of_ten_rows_of_a_hundred() -> None:
    rows, size = 10, 100
    assert norms.layer_norm(FP32, rows * size, rows) == work(
        FP32,
        add=rows * ((size - 1) + size + (size - 1) + 1),
        mul=rows * (size + size),
        fma=rows * size,
        div=rows * 3,
        sqrt=rows,
    )


def test_in_evaluation_batch_norm_is_little_more_than_a_multiply_add_for_each_element() -> None:
    channels, size = 16, 100
    assert norms.batch_norm(FP32, channels * size, channels, training=False) == work(
        FP32,
        fma=channels * size + channels,
        add=channels,
        sqrt=channels,
        div=channels,
        mul=channels,
    )
