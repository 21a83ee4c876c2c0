"""How formulas read a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flopwatch.events import Array, Op


def first_of(given: Mapping[str, Any], *names: str) -> Any:
    """The first argument that there is of several names for the same thing; KeyError if there is none."""
    for name in names:
        if name in given:
            return given[name]
    raise KeyError(names[0])


def result_of(op: Op, place: int = 0) -> Array:
    """One of the tensors that come out; ValueError if it was not made."""
    result = op.outputs[place] if place < len(op.outputs) else None
    if result is None:
        raise ValueError(f"{op.name} has no result {place}")
    return result
