"""What one operator does: operations, multiply-accumulates, and those of them that an implementation may leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Count, Key, Tally

NOTHING: Mapping[str, int] = MappingProxyType({})


class Numbers(NamedTuple):
    """What an array is made of; a complex number is two of `dtype`."""

    dtype: DType
    complex: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What a call of an operator does.

    `tally` holds all arithmetic, under Operations of one lane. `mac` are the multiply-accumulates of products (dense, convolution,
    attention, gates) on real numbers; they stand in the tally as well, as FMA, COMPLEX_FMA (four each) or INT_MAD. Nothing is
    left out of either; `avoidable` says how many MAC work on nothing but "padding" zeros or on what a "causal" mask discards.
    """

    tally: Tally = field(default_factory=Tally)
    mac: int = 0
    avoidable: Mapping[str, int] = field(default_factory=lambda: NOTHING)

    def __add__(self, other: Work) -> Work:
        if not isinstance(other, Work):
            return NotImplemented
        return total((self, other))

    def __mul__(self, times: int) -> Work:
        """This work done `times` times."""
        if not isinstance(times, int):
            return NotImplemented
        avoidable = {name: count * times for name, count in self.avoidable.items() if count * times}
        return Work(self.tally * times, self.mac * times, avoidable)

    __rmul__ = __mul__


def total(works: Iterable[Work]) -> Work:
    """The sum of several works."""
    every = list(works)
    avoidable: dict[str, int] = {}
    for work in every:
        for name, count in work.avoidable.items():
            avoidable[name] = avoidable.get(name, 0) + count
    return Work(Tally.total(work.tally for work in every), sum(work.mac for work in every), avoidable or NOTHING)


def numbers_of(array: Array) -> Numbers:
    """The numbers that an array is made of; ValueError for a datatype that nobody told us of."""
    if array.dtype not in _NUMBERS:
        raise ValueError(f"what are the numbers of a {array.dtype}?")
    return _NUMBERS[array.dtype]


def work(
    numbers: Numbers | Array,
    *,
    mac: int = 0,
    padding: int = 0,
    causal: int = 0,
    fma: int = 0,
    add: int = 0,
    mul: int = 0,
    div: int = 0,
    sqrt: int = 0,
    minmax: int = 0,
    transcendental: int = 0,
) -> Work:
    """Work on real or complex numbers, each argument a number of operations on whole (complex) numbers.

    `mac` and `fma` both are multiplications with an addition; only the first are MAC. `padding` and `causal` are the avoidable
    ones among `mac`. Of integers only `mac` counts (as OP); the rest is free, as it is for measured instructions. A complex sum
    is two additions, a complex quotient counts as a product and two divisions, any other complex function as two real ones.
    """
    of = numbers_of(numbers) if isinstance(numbers, Array) else numbers
    if not of.dtype.floating:
        return _made(((Operation.INT_MAD, mac),), of.dtype, mac, padding, causal)
    if of.complex:
        counts = (
            (Operation.COMPLEX_FMA, mac + fma),
            (Operation.COMPLEX_MUL, mul + div),
            (Operation.ADD, 2 * add),
            (Operation.DIV, 2 * div),
            (Operation.SQRT, 2 * sqrt),
            (Operation.MINMAX, 2 * minmax),
            (Operation.TRANSCENDENTAL, 2 * transcendental),
        )
        return _made(counts, of.dtype, 4 * mac, 4 * padding, 4 * causal)
    counts = (
        (Operation.FMA, mac + fma),
        (Operation.ADD, add),
        (Operation.MUL, mul),
        (Operation.DIV, div),
        (Operation.SQRT, sqrt),
        (Operation.MINMAX, minmax),
        (Operation.TRANSCENDENTAL, transcendental),
    )
    return _made(counts, of.dtype, mac, padding, causal)


def _made(counts: Iterable[tuple[Operation, int]], dtype: DType, mac: int, padding: int, causal: int) -> Work:
    # A network has hundreds of calls: this is on the way of all of them, so it builds what the constructors would by hand.
    made: dict[Key, Count] = {}
    for operation, count in counts:
        if count:
            if count < 0:
                raise ValueError(f"{count} times {operation}")
            made[_key(operation, dtype)] = Count(count)
    avoidable = {name: count for name, count in (("padding", padding), ("causal", causal)) if count}
    return Work(Tally._trusted(made), mac, avoidable or NOTHING)


@cache
def _key(operation: Operation, dtype: DType) -> Key:
    return Key(operation, dtype)


def size(shape: Iterable[int]) -> int:
    """Elements of a shape, 1 for a scalar."""
    return prod(shape)


_NUMBERS: Mapping[str, Numbers] = {
    "float64": Numbers(DType.FP64),
    "float32": Numbers(DType.FP32),
    "float16": Numbers(DType.FP16),
    "bfloat16": Numbers(DType.BF16),
    "complex128": Numbers(DType.FP64, True),
    "complex64": Numbers(DType.FP32, True),
    "complex32": Numbers(DType.FP16, True),
    **dict.fromkeys(
        ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), Numbers(DType.FP8)
    ),
    # Smaller numbers are widened to bytes before anything is done with them.
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"), Numbers(DType.FP8)),
    **dict.fromkeys(
        ("bool", "int8", "uint8", "qint8", "quint8", "quint4x2", "quint2x4", "int4", "uint4", "float4_e2m1fn_x2"),
        Numbers(DType.INT8),
    ),
    **dict.fromkeys(("int2", "uint2"), Numbers(DType.INT8)),
    **dict.fromkeys(("int16", "uint16"), Numbers(DType.INT16)),
    **dict.fromkeys(("int32", "uint32", "qint32"), Numbers(DType.INT32)),
    **dict.fromkeys(("int64", "uint64"), Numbers(DType.INT64)),
}
