"""The numbers that count, counted by hand."""

from __future__ import annotations

from flopwatch.flops.formulas import Numbers, work
from flopwatch.flops.operations import DType, Operation
from tests.unit.flops.formulas.counting import Counting, accumulated, added, operations, sigmoid, softmax


def test_a_plain_sum_of_n_has_one_addition_less() -> None:
    seen = Counting()
    added(seen.numbers(5))
    assert seen.operations == {Operation.ADD: 4}


def test_accumulating_products_takes_as_many_additions_as_products() -> None:
    seen = Counting()
    accumulated(a * b for a, b in zip(seen.numbers(5), seen.numbers(5), strict=True))
    assert seen.mac == 5


def test_products_with_padding_are_counted_apart() -> None:
    seen = Counting()
    accumulated((seen.number() * seen.blank(), seen.blank() * 2, seen.number() * 3))
    assert (seen.mac, seen.blank_products) == (3, 2)


def test_plain_numbers_count_on_either_side_and_signs_are_free() -> None:
    seen = Counting()
    x = seen.number(2)
    assert float(1 / (3 - (2 * -x))) == 1 / 7
    assert seen.operations == {Operation.MUL: 1, Operation.ADD: 1, Operation.DIV: 1}


def test_functions() -> None:
    seen = Counting()
    softmax(seen.numbers(4))
    sigmoid(seen.number())
    assert seen.operations == {
        Operation.MINMAX: 3,
        Operation.ADD: 4 + 3 + 1,
        Operation.TRANSCENDENTAL: 4 + 1,
        Operation.DIV: 4 + 1,
    }


def test_a_fused_operation_is_two() -> None:
    done = work(Numbers(DType.FP32), mac=3, fma=2, add=1, mul=4)
    assert operations(done) == {Operation.MUL: 3 + 2 + 4, Operation.ADD: 3 + 2 + 1}
