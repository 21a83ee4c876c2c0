"""What a function of Chainer was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas.work import Numbers, numbers_of


def inputs_of(op: Op) -> list[Array]:
    """All arrays that go in; a gradient that is not there is None."""
    found: list[Array] = op.arguments["inputs"]
    return found


def first(op: Op) -> Array:
    """The first array that goes in."""
    return inputs_of(op)[0]


def result(op: Op) -> Array:
    """The first array that comes out."""
    made = op.outputs[0]
    assert made is not None
    return made


def numbers(op: Op) -> Numbers:
    """What the numbers of the first floating array are, or of the first array where none is."""
    arrays = [array for array in inputs_of(op) if array is not None]
    return numbers_of(next((array for array in arrays if array.dtype.startswith(("float", "complex"))), arrays[0]))


def setting(op: Op, name: str, default: Any = None) -> Any:
    """An attribute of the function, if it is a plain value."""
    arguments: Mapping[str, Any] = op.arguments
    return arguments.get(name, default)


def rows_along(array: Array, axis: Any) -> int:
    """How many rows an array has along an axis, some axes, or as a whole (None)."""
    if axis is None:
        return 1
    length = 1
    for each in axis if isinstance(axis, (tuple, list)) else (axis,):
        length *= array.shape[each]
    return array.size // length if length else 0
