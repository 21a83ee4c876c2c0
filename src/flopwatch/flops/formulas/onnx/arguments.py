"""What formulas ask of a call: its result, its rows, the value of an argument that older versions have as an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flopwatch.events import Array, Op


def result(op: Op) -> Array:
    """The first tensor that comes out; ValueError if there is none."""
    for array in op.outputs:
        if array is not None:
            return array
    raise ValueError(f"{op.name} gives no tensor")


def given(op: Op, *names: str) -> Array:
    """The first of these arguments that is a tensor; ValueError if none is."""
    for name in names:
        array = op.arguments.get(name)
        if isinstance(array, Array):
            return array
    raise ValueError(f"{op.name} has no {' or '.join(names)}")


def has(op: Op, name: str) -> bool:
    """Whether an optional tensor was given."""
    return isinstance(op.arguments.get(name), Array)


def value(op: Op, name: str) -> Any:
    """An attribute, or the number or numbers of a tensor that later versions have in its place; None if not known."""
    found = op.arguments.get(f"{name}_value")
    return found if found is not None else None if has(op, name) else op.arguments.get(name)


def integer(op: Op, name: str, default: int) -> int:
    """As `value`, one number."""
    found = value(op, name)
    if found is None:
        return default
    return int(found[0]) if isinstance(found, Sequence) and not isinstance(found, str) else int(found)


def lines(array: Array, axis: int) -> int:
    """Rows along an axis, none if there are no elements."""
    if not array.shape or not array.size:
        return 1 if array.size else 0
    return array.size // array.shape[axis]


def rows(array: Array, axis: int) -> int:
    """Rows of an array whose dimensions from `axis` on are one row; none if there are no elements."""
    return prod(array.shape[: axis % len(array.shape)] if array.shape else ()) if array.size else 0


def ints(op: Op, name: str, default: Sequence[int]) -> Sequence[int]:
    """A list of numbers that an attribute gives, or what stands for it."""
    found = op.arguments.get(name)
    return default if not found else tuple(found)
