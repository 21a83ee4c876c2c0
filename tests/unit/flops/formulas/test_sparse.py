"""Products with sparse matrices, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, estimate

ROWS, INNER, COLUMNS, HELD = 6, 8, 5, 11
SPARSE = Array((ROWS, INNER), nonzero=HELD)
DENSE = Array((INNER, COLUMNS))
UNTOLD = Array((ROWS, INNER), nonzero=-1)


def worth(name: str, *outputs: Array, **arguments: Any) -> Work | Unknown:
    found = estimate(Op(name, arguments, outputs))
    assert isinstance(found, Work | Unknown)
    return found


def mac(name: str, *outputs: Array, **arguments: Any) -> int:
    found = worth(name, *outputs, **arguments)
    assert isinstance(found, Work)
    return found.mac


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("aten::mm", "self", "mat2"),
        ("aten::_sparse_mm", "sparse", "dense"),
        ("aten::hspmm", "mat1", "mat2"),
        ("aten::matmul", "self", "other"),
    ],
)
def test_the_elements_that_are_held_meet_a_row_each(name: str, left: str, right: str) -> None:
    assert mac(name, **{left: SPARSE, right: DENSE}) == HELD * COLUMNS
    assert worth(name, **{left: UNTOLD, right: DENSE}) == Unknown(name)


def test_either_side_may_be_sparse_but_not_both() -> None:
    right = Array((INNER, COLUMNS), nonzero=HELD)
    assert mac("aten::mm", self=Array((ROWS, INNER)), mat2=right) == ROWS * HELD
    assert worth("aten::mm", self=SPARSE, mat2=right) == Unknown("aten::mm")
    assert worth("aten::_sparse_sparse_matmul", self=SPARSE, other=right) == Unknown("aten::_sparse_sparse_matmul")


def test_with_a_vector_and_with_a_sum() -> None:
    assert mac("aten::mv", self=SPARSE, vec=Array((INNER,))) == HELD
    found = worth("aten::addmm", self=Array((ROWS, COLUMNS)), mat1=SPARSE, mat2=DENSE)
    assert isinstance(found, Work)
    assert (found.mac, sum(found.tally.flop().values())) == (HELD * COLUMNS, 2 * HELD * COLUMNS + ROWS * COLUMNS)
    weight = Array((COLUMNS, INNER), nonzero=HELD)
    assert mac("aten::linear", input=Array((2, 3, INNER)), weight=weight, bias=None) == 2 * 3 * HELD


def test_only_some_elements_of_a_dense_product() -> None:
    sampled = Array((ROWS, COLUMNS), nonzero=HELD)
    assert mac("aten::sparse_sampled_addmm", self=sampled, mat1=Array((ROWS, INNER)), mat2=DENSE) == HELD * INNER


def test_sums_count_and_extremes_are_unknown() -> None:
    assert mac("aten::_sparse_mm_reduce_impl", self=SPARSE, other=DENSE, reduce="sum") == HELD * COLUMNS
    assert isinstance(worth("aten::_sparse_mm_reduce_impl", self=SPARSE, other=DENSE, reduce="amax"), Unknown)


def test_two_of_four() -> None:
    half = Array((ROWS, INNER // 2), "float16")
    right = Array((INNER, COLUMNS), "float16")
    whole = ROWS * INNER * COLUMNS
    assert mac("aten::_sparse_semi_structured_mm", mat1=half, mat1_meta=half, mat2=right) == whole // 2
    inputs = Array((3, 7, INNER), "float16")
    assert (
        mac("aten::_sparse_semi_structured_linear", input=inputs, weight=half, meta=half) == 3 * 7 * ROWS * INNER // 2
    )
    result = Array((ROWS, COLUMNS), "float16")
    assert mac("aten::_cslt_sparse_mm", result, compressed_A=Array((99,), "float16"), dense_B=right) == whole // 2
