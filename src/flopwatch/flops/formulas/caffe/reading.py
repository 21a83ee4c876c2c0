"""What a layer of Caffe was given; weights and settings have the names that `formats/caffe/layers` gives them."""

from __future__ import annotations

from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas.work import Numbers, numbers_of


def bottom_of(op: Op) -> Array:
    """The first blob that a layer takes."""
    found: Array = op.arguments["bottoms"][0]
    return found


def numbers(op: Op) -> Numbers:
    """What its numbers are."""
    return numbers_of(bottom_of(op))


def setting(op: Op, name: str) -> Any:
    """A weight or setting of a layer."""
    return op.arguments[name]


def made(op: Op) -> int:
    """Elements of the first blob that it gives."""
    return sum(top.size for top in op.outputs[:1] if top is not None)


def rows(op: Op) -> int:
    """How many rows there are along the axis of the layer."""
    bottom = bottom_of(op)
    length = bottom.shape[setting(op, "axis")]
    return bottom.size // length if length else 0
