"""Sums, extremes, variances and softmax, against loops over numbers that count."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flopwatch.flops.formulas import reductions, work
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, added, exp, largest, log, operations, softmax, sqrt

FP32 = Numbers(DType.FP32)
ROWS = st.integers(1, 4)
SIZE = st.integers(1, 7)


@given(ROWS, SIZE)
def test_sum_and_mean(rows: int, size: int) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        added(row)
    assert operations(reductions.summed(FP32, rows * size, rows)) == +seen.operations
    seen = Counting()
    for row in seen.numbers(rows, size):
        _ = added(row) / size
    assert operations(reductions.mean(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE)
def test_product_and_extreme(rows: int, size: int) -> None:
    seen = Counting()
    for first, *rest in seen.numbers(rows, size):
        for number in rest:
            first = first * number
    assert operations(reductions.multiplied(FP32, rows * size, rows)) == +seen.operations
    seen = Counting()
    for row in seen.numbers(rows, size):
        largest(row)
    assert operations(reductions.extreme(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE, st.booleans())
def test_variance(rows: int, size: int, root: bool) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        middle = added(row) / size
        variance = added(difference * difference for difference in [number - middle for number in row]) / 3
        _ = sqrt(variance) if root else variance
    assert operations(reductions.variance(FP32, rows * size, rows, root=root)) == +seen.operations


@given(ROWS, SIZE)
def test_logsumexp(rows: int, size: int) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        top = largest(row)
        _ = top + log(added(exp(number - top) for number in row))
    assert operations(reductions.logsumexp(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE)
def test_softmax(rows: int, size: int) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        softmax(row)
    assert operations(reductions.softmax(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE)
def test_softmax_backward(rows: int, size: int) -> None:
    seen = Counting()
    for results, gradients in zip(seen.numbers(rows, size), seen.numbers(rows, size), strict=True):
        dot = added(r * g for r, g in zip(results, gradients, strict=True))
        _ = [r * (g - dot) for r, g in zip(results, gradients, strict=True)]
    assert operations(reductions.softmax_backward(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE)
def test_log_softmax(rows: int, size: int) -> None:
    seen = Counting()
    for row in seen.numbers(rows, size):
        top = largest(row)
        shifted = [number - top for number in row]
        total = log(added(exp(number) for number in shifted))
        _ = [number - total for number in shifted]
    assert operations(reductions.log_softmax(FP32, rows * size, rows)) == +seen.operations


@given(ROWS, SIZE)
def test_log_softmax_backward(rows: int, size: int) -> None:
    seen = Counting()
    for results, gradients in zip(seen.numbers(rows, size), seen.numbers(rows, size), strict=True):
        total: Any = added(gradients)
        _ = [g - exp(r) * total for r, g in zip(results, gradients, strict=True)]
    assert operations(reductions.log_softmax_backward(FP32, rows * size, rows)) == +seen.operations


def test_ten_rows_of_a_hundred() -> None:
    rows, size = 10, 100
    assert reductions.softmax(FP32, rows * size, rows) == work(
        FP32,
        minmax=rows * (size - 1),
        add=rows * size + rows * (size - 1),
        transcendental=rows * size,
        div=rows * size,
    )


def test_nothing_comes_of_nothing() -> None:
    assert reductions.summed(FP32, 0, 5) == work(FP32)
    assert reductions.softmax(FP32, 0, 0) == work(FP32)
