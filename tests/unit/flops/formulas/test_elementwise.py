"""The table of functions: its operations are counted again, by evaluating each equation with numbers that count."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from flopwatch.events import Array
from flopwatch.flops.formulas import work
from flopwatch.flops.formulas.elementwise import Function, elementwise, functions
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType, Operation
from tests.unit.flops.formulas.counting import Counting, Number, larger, operations, smaller, sqrt

FP32 = Numbers(DType.FP32)
TRANSCENDENTALS = ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf")


def extreme(of: Any) -> Any:
    """max() and min() of numbers that count and plain ones."""
    return lambda one, other: of(one, other) if isinstance(one, Number) else of(other, one)


def evaluated(equation: str) -> Counter[Operation]:
    """What an equation does, each of its letters a number that counts."""
    seen = Counting()
    names: dict[str, Any] = {
        name: (lambda of: lambda number: number.function(of))(getattr(math, name)) for name in TRANSCENDENTALS
    }
    names |= {"i0": names["exp"], "sqrt": sqrt, "abs": abs, "max": extreme(larger), "min": extreme(smaller)}
    names |= {"floor": lambda number: seen.number(math.floor(number.value)), "where": lambda _, one, other: one}
    names |= {letter: seen.number(0.1 * (1 + index)) for index, letter in enumerate("xyzwrg")}
    constants = set(compile(equation, "equation", "eval").co_names) - set(names)
    eval(equation, {"__builtins__": {}}, names | dict.fromkeys(constants, 1.7))
    return +seen.operations


def stated(function: Function) -> Counter[Operation]:
    return operations(elementwise(function.name, FP32, 1))


@pytest.mark.parametrize("name", functions())
def test_operations_are_those_of_the_equation(name: str) -> None:
    function = functions()[name]
    assert stated(function) == evaluated(function.equation)


def test_elements_multiply_the_work() -> None:
    elements = 6
    assert elementwise("sigmoid", FP32, elements) == work(FP32, add=elements, div=elements, transcendental=elements)


def test_numbers_are_those_of_the_array() -> None:
    assert elementwise("silu", Array((2, 3), "bfloat16"), 6).tally.flop().keys() == {DType.BF16}


def test_integers_do_nothing_that_counts() -> None:
    assert not elementwise("mul", Array((7,), "int64"), 7).tally


def test_a_complex_product_is_four_products_and_two_sums() -> None:
    assert elementwise("mul", Array((5,), "complex64"), 5).tally.flop() == {DType.FP32: 5 * (4 + 2)}


def test_an_unknown_function_is_an_error() -> None:
    with pytest.raises(KeyError, match="no such function"):
        elementwise("no such function", FP32, 1)
