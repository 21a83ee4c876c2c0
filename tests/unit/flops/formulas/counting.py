"""Numbers that count what is done to them: write an operator as plain loops over them, and compare with its formula.

    seen = Counting()
    x, w = seen.numbers(3, 4), seen.numbers(4)
    y = [added(a * b for a, b in zip(row, w)) for row in x]
    assert seen.operations == {Operation.MUL: 12, Operation.ADD: 9}

Every arithmetic operator counts once, also with a plain Python number on the other side. Negation, absolute value and
comparisons are free, as they are for measured instructions. A sum that begins with a plain 0 counts an addition for each term:
that is what a multiply-accumulate does, so `accumulated` is for products and `added` for plain sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from flopwatch.flops.formulas import Work
from flopwatch.flops.operations import Operation


class Counting:
    """What was done to all numbers that were made here."""

    def __init__(self) -> None:
        self.operations: Counter[Operation] = Counter()
        self.blank_products = 0  # of which one factor, or both, was `blank`

    def number(self, value: float = 1.0) -> Number:
        """A number that reports here."""
        return Number(value, self)

    def blank(self) -> Number:
        """The zero of padding: products with it are counted apart as well."""
        return Number(0.0, self, blank=True)

    def numbers(self, *shape: int, start: float = 0.5) -> Any:
        """An array of numbers (numpy, of objects), all different and positive, as far as that goes."""
        made = np.empty(shape, dtype=object)
        for index, place in enumerate(product(*map(range, shape))):
            made[place] = Number(start + index / 8, self)
        return made if shape else Number(start, self)

    @property
    def mac(self) -> int:
        """Products, where everything that was done was multiply-accumulate: as many products as additions."""
        assert set(self.operations) <= {Operation.MUL, Operation.ADD}, self.operations
        assert self.operations[Operation.MUL] == self.operations[Operation.ADD], self.operations
        return self.operations[Operation.MUL]


class Number:
    """A number that counts."""

    __slots__ = ("blank", "seen", "value")

    def __init__(self, value: float, seen: Counting, blank: bool = False) -> None:
        self.value = value
        self.seen = seen
        self.blank = blank

    def _did(self, operation: Operation, value: float) -> Number:
        self.seen.operations[operation] += 1
        return Number(value, self.seen)

    def __add__(self, other: Number | float) -> Number:
        return self._did(Operation.ADD, self.value + value_of(other))

    def __sub__(self, other: Number | float) -> Number:
        return self._did(Operation.ADD, self.value - value_of(other))

    def __rsub__(self, other: float) -> Number:
        return self._did(Operation.ADD, other - self.value)

    def __mul__(self, other: Number | float) -> Number:
        if self.blank or (isinstance(other, Number) and other.blank):
            self.seen.blank_products += 1
        return self._did(Operation.MUL, self.value * value_of(other))

    def __truediv__(self, other: Number | float) -> Number:
        divisor = value_of(other)
        return self._did(Operation.DIV, self.value / divisor if divisor else math.inf)

    def __rtruediv__(self, other: float) -> Number:
        return self._did(Operation.DIV, other / self.value if self.value else math.inf)

    def __pow__(self, power: Number | float) -> Number:
        return self._did(Operation.TRANSCENDENTAL, abs(self.value) ** value_of(power) if self.value else 0.0)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return Number(-self.value, self.seen)

    def __abs__(self) -> Number:
        return Number(abs(self.value), self.seen)

    def __lt__(self, other: Number | float) -> bool:
        return self.value < value_of(other)

    def __le__(self, other: Number | float) -> bool:
        return self.value <= value_of(other)

    def __gt__(self, other: Number | float) -> bool:
        return self.value > value_of(other)

    def __ge__(self, other: Number | float) -> bool:
        return self.value >= value_of(other)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Number({self.value})"

    def sqrt(self) -> Number:
        return self._did(Operation.SQRT, math.sqrt(abs(self.value)))

    def function(self, of: Callable[[float], float]) -> Number:
        """One value of a transcendental function; what it is does not matter, so far as it can be computed here."""
        try:
            value = of(self.value)
        except (OverflowError, ValueError):
            value = 0.0
        return self._did(Operation.TRANSCENDENTAL, value)


def value_of(number: Number | float) -> float:
    """The plain number."""
    return number.value if isinstance(number, Number) else float(number)


def sqrt(number: Number) -> Number:
    return number.sqrt()


def exp(number: Number) -> Number:
    return number.function(math.exp)


def log(number: Number) -> Number:
    return number.function(math.log)


def tanh(number: Number) -> Number:
    return number.function(math.tanh)


def erf(number: Number) -> Number:
    return number.function(math.erf)


def sigmoid(number: Number) -> Number:
    """1 / (1 + exp(-x)): an exponential, an addition, a division."""
    return 1 / (1 + exp(-number))


def relu(number: Number) -> Number:
    return larger(number, 0)


def larger(one: Number, other: Number | float) -> Number:
    return one._did(Operation.MINMAX, max(one.value, value_of(other)))


def smaller(one: Number, other: Number | float) -> Number:
    return one._did(Operation.MINMAX, min(one.value, value_of(other)))


def largest(values: Iterable[Number]) -> Number:
    """The largest of n, with n - 1 comparisons that select."""
    found, *rest = values
    for value in rest:
        found = larger(found, value)
    return found


def added(values: Iterable[Number]) -> Number | float:
    """The sum of n, with n - 1 additions; a plain 0 for none."""
    terms = list(values)
    total: Number | float = terms[0] if terms else 0
    for value in terms[1:]:
        total = total + value
    return total


def accumulated(products: Iterable[Number]) -> Number | float:
    """The sum of n from zero, with n additions: with the products that go in, n multiply-accumulates."""
    total: Number | float = 0
    for each in products:
        total = total + each
    return total


def softmax(row: Iterable[Number]) -> list[Number]:
    """exp(x - max x) over their sum."""
    values = list(row)
    top = largest(values)
    powers = [exp(value - top) for value in values]
    total = added(powers)
    return [power / total for power in powers]


def operations(work: Work) -> Counter[Operation]:
    """What a work holds, in the terms of `Counting.operations`: a multiply-add is a product and an addition."""
    found: Counter[Operation] = Counter()
    for key, count in work.tally.items():
        assert key.operation is not Operation.INT_MAD, "integer work: compare `mac`"
        for operation, times in _PARTS.get(key.operation, {key.operation: 1}).items():
            found[operation] += times * count.instructions
    return +found


_PARTS = {
    Operation.FMA: {Operation.MUL: 1, Operation.ADD: 1},
    Operation.COMPLEX_FMA: {Operation.MUL: 4, Operation.ADD: 4},
    Operation.COMPLEX_MUL: {Operation.MUL: 4, Operation.ADD: 2},
}
