"""What rules for the shapes of onnxruntime's operators have in common.

A rule may raise IndexError, TypeError, ValueError or AttributeError for an input that is missing or of unknown shape: then nothing
is known of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flopwatch.formats.onnx.values import Dims, Value

INT32, FLOAT, UINT8 = 6, 1, 2
"""Numbers of element types in onnx.proto."""

Inputs = Sequence[Value | None]
Rule = Callable[[Inputs, Mapping[str, Any]], list[Value]]
RULES: dict[str, Rule] = {}


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def of(inputs: Inputs, place: int) -> Value:
    """An input that must be there."""
    value = inputs[place] if place < len(inputs) else None
    if value is None:
        raise IndexError(place)
    return value


def broadcast(one: Sequence[int], two: Sequence[int]) -> Dims:
    """The common shape of two."""
    length = max(len(one), len(two))
    pairs = zip((1,) * (length - len(one)) + tuple(one), (1,) * (length - len(two)) + tuple(two), strict=True)
    found = []
    for left, right in pairs:
        if left != right and 1 not in (left, right):
            raise ValueError("shapes do not go together")
        found.append(right if left == 1 else left)
    return tuple(found)
