"""Complex numbers and matrices of numbers that count, and the call of a formula by the name of its operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, Number

SINGLE = Numbers(DType.FP32)
COMPLEX = Numbers(DType.FP32, True)


def worth(name: str, *outputs: Array | None, **arguments: Any) -> Work:
    """What the formula of an operator says; not for free and unknown ones."""
    found = estimate(Op(name, arguments, outputs))
    assert isinstance(found, Work), found
    return found


def flop(work: Work) -> int:
    """FLOP of all datatypes."""
    return sum(work.tally.flop().values())


def counted(seen: Counting, values: Any) -> Any:
    """Numbers that count, of the values of an array."""
    plain = np.asarray(values, dtype=float)
    made = np.empty(plain.shape, dtype=object)
    for place in np.ndindex(*plain.shape):
        made[place] = seen.number(float(plain[place]))
    return made


def values(array: Any) -> Any:
    """The plain values of numbers that count."""
    return np.vectorize(float, otypes=[float])(np.asarray(array, dtype=object))


def weighted(points: list[Number], weights: list[Any]) -> Number:
    """The sum of points times weights: a product, then multiply-adds."""
    found = points[0] * weights[0]
    for point, weight in zip(points[1:], weights[1:], strict=True):
        found = found + point * weight
    return found


class Complex:
    """A complex number made of two that count; products with plain complex numbers are whole ones."""

    def __init__(self, real: Number, imag: Number) -> None:
        self.real = real
        self.imag = imag

    @classmethod
    def of(cls, seen: Counting, value: complex) -> Complex:
        return cls(seen.number(value.real), seen.number(value.imag))

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: complex) -> Complex:
        return Complex(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def scaled(self, factor: float) -> Complex:
        return Complex(self.real * factor, self.imag * factor)

    def turned(self) -> Complex:
        """Times i, which only swaps."""
        return Complex(-self.imag, self.real)

    def __complex__(self) -> complex:
        return complex(float(self.real), float(self.imag))
