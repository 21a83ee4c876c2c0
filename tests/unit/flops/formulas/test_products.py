"""Products of matrices, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally

ROWS, INNER, COLUMNS, BATCH = 3, 4, 5, 2
A = Array((ROWS, INNER))
B = Array((INNER, COLUMNS))
OUT = Array((ROWS, COLUMNS))
MAC = ROWS * INNER * COLUMNS


def worth(name: str, *outputs: Array, **arguments: Any) -> Work:
    found = estimate(Op(name, arguments, outputs))
    assert isinstance(found, Work)
    return found


def done(**counts: int) -> Tally:
    return Tally.total(Tally.of(Operation(name), DType.FP32, instructions=count) for name, count in counts.items())


def test_a_product_of_matrices_is_multiply_accumulates_alone() -> None:
    found = worth("aten::mm", OUT, self=A, mat2=B)
    assert (found.mac, found.tally) == (MAC, done(fma=MAC))


def test_a_sum_with_a_product_adds_once_for_each_element_of_the_result() -> None:
    found = worth("aten::addmm", OUT, self=Array((COLUMNS,)), mat1=A, mat2=B, beta=1, alpha=1)
    assert (found.mac, found.tally) == (MAC, done(fma=MAC, add=ROWS * COLUMNS))


def test_scalars_scale_what_they_stand_before() -> None:
    found = worth("aten::addmm", OUT, self=Array((COLUMNS,)), mat1=A, mat2=B, beta=2, alpha=3)
    assert found.tally == done(fma=MAC, add=ROWS * COLUMNS, mul=COLUMNS + ROWS * COLUMNS)


def test_an_addend_times_nought_is_not_read() -> None:
    assert worth("aten::addmm", OUT, self=OUT, mat1=A, mat2=B, beta=0, alpha=1).tally == done(fma=MAC)


def test_a_product_of_bytes_is_integer_work() -> None:
    found = worth("aten::_int_mm", self=Array((ROWS, INNER), "int8"), mat2=Array((INNER, COLUMNS), "int8"))
    assert (found.mac, found.tally) == (MAC, Tally.of(Operation.INT_MAD, DType.INT8, instructions=MAC))
    assert not found.tally.flop()


def test_a_complex_product_is_four_real_ones() -> None:
    found = worth("aten::mm", self=Array((ROWS, INNER), "complex64"), mat2=Array((INNER, COLUMNS), "complex64"))
    assert (found.mac, sum(found.tally.flop().values())) == (4 * MAC, 8 * MAC)


@pytest.mark.parametrize(
    ("left", "right", "mac"),
    [
        ((2, 1, 3, 4), (5, 4, 6), 2 * 5 * 3 * 4 * 6),
        ((3, 4), (4,), 3 * 4),
        ((4,), (4, 5), 4 * 5),
        ((4,), (4,), 4),
        ((7, 3, 4), (4,), 7 * 3 * 4),
        ((2, 3, 4), (2, 4, 5), 2 * 3 * 4 * 5),
        ((0, 4), (4, 5), 0),
    ],
)
def test_leading_dimensions_are_broadcast(left: tuple[int, ...], right: tuple[int, ...], mac: int) -> None:
    assert worth("aten::matmul", self=Array(left), other=Array(right)).mac == mac


def test_a_linear_layer_works_on_every_position() -> None:
    found = worth("aten::linear", input=Array((5, 10, 3)), weight=Array((8, 3)), bias=Array((8,)))
    assert (found.mac, found.tally) == (5 * 10 * 3 * 8, done(fma=5 * 10 * 3 * 8, add=5 * 10 * 8))


def test_a_linear_layer_takes_one_vector() -> None:
    assert worth("aten::linear", input=Array((10,)), weight=Array((11, 10)), bias=None).mac == 10 * 11
