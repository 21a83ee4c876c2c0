"""What a layer makes of the shapes that it is given: tops, weights, and the settings that a formula needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NoReturn, TypeVar

from flopwatch.formats.caffe.network import Layer

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Made:
    """Shapes of the tops, of learned weights in Caffe's order, of statistics that are kept but not learned; settings for the formula."""

    tops: tuple[Shape, ...]
    weights: Mapping[str, Shape] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    buffers: Mapping[str, Shape] = field(default_factory=dict)


Rule = Callable[[Layer, Sequence[Shape]], Made]
R = TypeVar("R", bound=Rule)

RULES: dict[str, Rule] = {}


def layer(*types: str) -> Callable[[R], R]:
    """Register a function as the rule of layer types."""

    def register(rule: R) -> R:
        for each in types:
            RULES[each] = rule
        return rule

    return register


def refuse(layer: Layer, happened: str, bottoms: Sequence[Shape] = (), todo: str = "") -> NoReturn:
    """Raise a UsageError that names the layer, its line and what it was given."""
    seen = f"It is given {', '.join(map(shown, bottoms))}." if bottoms else ""
    layer.place.refuse(f"{layer.named} {happened}", seen=seen, todo=todo)


def shown(shape: Shape) -> str:
    """A shape as people write it."""
    return "x".join(map(str, shape)) or "a single number"


def single(layer: Layer, bottoms: Sequence[Shape]) -> Shape:
    """The only bottom."""
    if len(bottoms) != 1:
        refuse(layer, f"takes one bottom, not {len(bottoms)}", bottoms)
    return bottoms[0]


def several(layer: Layer, bottoms: Sequence[Shape], least: int, most: int | None = None) -> Sequence[Shape]:
    """The bottoms, if there are enough of them and not too many."""
    if len(bottoms) < least or (most is not None and len(bottoms) > most):
        wanted = f"at least {least}" if most is None else f"{least} to {most}" if least != most else str(least)
        refuse(layer, f"takes {wanted} bottoms, not {len(bottoms)}", bottoms)
    return bottoms


def axis_of(layer: Layer, axis: int, shape: Shape, *, end: bool = False) -> int:
    """An axis counted from the front; negative ones count from the back. With `end` it may stand behind the last one."""
    found = axis + len(shape) + end if axis < 0 else axis
    if not 0 <= found < len(shape) + end:
        refuse(layer, f"speaks of axis {axis}, which its bottom has not", [shape])
    return found


def size(shape: Iterable[int]) -> int:
    """Elements of a shape."""
    return prod(shape)
