"""Operators over lists of tensors: each does for every one what the operator of the same name does for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate, formula, free
from flopwatch.flops.formulas.work import total

# Operators of single numbers: many tensors cost what one of all their elements would.
_POINTWISE = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp lgamma log
    log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc
"""
_OTHERS = {"max": "max", "norm": "linalg_vector_norm", "powsum": "linalg__powsum"}
# What the operator for one tensor calls the arguments.
_NAMES: Mapping[str, Mapping[str, str]] = {
    "lerp": {"tensors1": "end", "weights": "weight"},
    "addcmul": {"scalars": "value"},
    "addcdiv": {"scalars": "value"},
    "pow": {"scalars": "exponent"},
    "norm": {"ord": "ord"},
}
_SCALAR_NAMES = {"scalar": "other", "scalars": "other"}
# Of these the single operator calls the second tensor by another name.
_LIMITS = {"clamp_max": "max", "clamp_min": "min"}

free("copies data only", "aten::_foreach_clone", "aten::_foreach_copy", "aten::_foreach_zero")


@formula(*(f"aten::_foreach_{name}" for name in _POINTWISE.split()))
def pointwise(op: Op) -> Work | Free | Unknown:
    """The operator of the same name, once for each datatype that is met, on all elements together."""
    alike = _alike(op)
    if alike is not None:
        return _sum(op, [(alike, 1)])
    sizes: Counter[tuple[Any, ...]] = Counter()
    for arguments in _each(op):
        sizes[_signature(arguments)] += prod(_widest(arguments))
    return _sum(op, [(_flat(signature, size), 1) for signature, size in sizes.items()])


@formula(*(f"aten::_foreach_{name}" for name in _OTHERS))
def others(op: Op) -> Work | Free | Unknown:
    """The operator for one tensor, once for each shape that is met, as often as it is met."""
    shapes: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for index, arguments in enumerate(_each(op)):
        made = op.outputs[index] if index < len(op.outputs) else None
        shapes[(*arguments.items(), ("result", made))] += 1
    return _sum(op, [(dict(arguments), times) for arguments, times in shapes.items()])


def _sum(op: Op, calls: list[tuple[dict[str, Any], int]]) -> Work | Free | Unknown:
    kind = _kind(op.name)
    works = []
    for arguments, times in calls:
        made = arguments.pop("result")
        found = estimate(Op(f"aten::{_OTHERS.get(kind, kind)}", arguments, (made,)))
        if isinstance(found, Unknown):
            return Unknown(op.name)
        if isinstance(found, Free):
            return found
        works.append(times * found)
    return total(works)


def _each(op: Op) -> list[dict[str, Any]]:
    """The arguments of each of the calls for one tensor."""
    lists = next(value for value in op.arguments.values() if isinstance(value, (list, tuple)))
    kind = _kind(op.name)
    calls = []
    for index in range(len(lists)):
        arguments = {}
        for name, value in op.arguments.items():
            arguments[_name(kind, name)] = value[index] if isinstance(value, (list, tuple)) else value
        calls.append(arguments)
    return calls


def _alike(op: Op) -> dict[str, Any] | None:
    """The one call that stands for all, where lists are of one datatype or scalar each, and of the same shapes: most are."""
    kind = _kind(op.name)
    shapes: list[tuple[int, ...]] | None = None
    arguments: dict[str, Any] = {}
    for name, value in op.arguments.items():
        if isinstance(value, (list, tuple)):
            first = value[0] if value else None
            if isinstance(first, Array):
                own = [each.shape for each in value]
                shapes = shapes or own
                if own != shapes or any(each.dtype != first.dtype for each in value):
                    return None
                value = Array((sum(map(prod, own)),), first.dtype)
            elif first is None or any(each != first for each in value):
                return None
            else:
                value = first
        elif isinstance(value, Array) and value.shape:
            return None
        arguments[_name(kind, name)] = value
    made = next((each for each in arguments.values() if isinstance(each, Array) and each.shape), None)
    return None if made is None else arguments | {"result": made}


def _kind(name: str) -> str:
    return name.removeprefix("aten::_foreach_").removesuffix("_")


def _name(kind: str, name: str) -> str:
    if kind in _LIMITS and name != "self":
        return _LIMITS[kind]
    if kind in _NAMES:
        return _NAMES[kind].get(name, "exponent" if kind == "pow" and name == "scalar" else name)
    return _SCALAR_NAMES.get(name, name)


def _widest(arguments: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the result: lists are of tensors of the same shape, or one is a scalar."""
    return max((each.shape for each in arguments.values() if isinstance(each, Array)), key=prod)


def _signature(arguments: dict[str, Any]) -> tuple[Any, ...]:
    """What two calls must have in common to be done as one: datatypes, which are scalars, other values."""
    shape = _widest(arguments)
    return tuple(
        (name, value.dtype, value.shape == shape) if isinstance(value, Array) else (name, value)
        for name, value in arguments.items()
    )


def _flat(signature: tuple[Any, ...], size: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, value, *full in signature:
        arguments[name] = Array((size,) if full[0] else (), value) if full else value
    first = next(value for value in arguments.values() if isinstance(value, Array) and value.shape)
    return arguments | {"result": Array((size,), first.dtype)}
