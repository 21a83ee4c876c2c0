"""Norms of vectors, and what is scaled by them."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula, work
from flopwatch.flops.formulas.vectors import norm
from flopwatch.flops.formulas.work import Numbers, numbers_of


@formula("aten::linalg_vector_norm", "aten::norm", "aten::native_norm", "aten::frobenius_norm")
def vector_norm(op: Op) -> Work:
    """Norms over `dim`, or over everything; worked out in the datatype of the result."""
    given = op.arguments
    return _norms(given["self"], op.outputs[0], given.get("ord", given.get("p", 2)))


@formula("aten::linalg__powsum")
def powsum(op: Op) -> Work:
    """The sums of powers of which norms are roots."""
    return _norms(op.arguments["self"], op.outputs[0], op.arguments.get("ord", 2), root=False)


@formula("aten::dist")
def distance(op: Op) -> Work:
    """The norm of a difference."""
    given = op.arguments
    made = op.outputs[0]
    n = _broadcast(given["self"].shape, given["other"].shape)
    numbers = numbers_of(given["self"])
    return work(numbers, add=n) + norm(numbers, 1, n, _order(given.get("p", 2)), _dtype(made, numbers))


@formula("aten::renorm")
def renorm(op: Op) -> Work:
    """Norms of slices along `dim`; all of each times limit / (norm + 1e-7), or times one."""
    given = op.arguments
    array: Array = given["self"]
    slices = array.shape[given["dim"]]
    return _renormed(numbers_of(array), slices, array.size // slices if slices else 0, given["p"])


@formula("aten::embedding_renorm")
def embedding_renorm(op: Op) -> Work:
    """Dense: as if all indices were different and all of their rows too long."""
    given = op.arguments
    return _renormed(
        numbers_of(given["self"]), given["indices"].size, given["self"].shape[-1], given.get("norm_type", 2.0)
    )


def _norms(given: Array, made: Array | None, order: Any, root: bool = True) -> Work:
    assert made is not None
    numbers = numbers_of(given)
    if not made.size:
        return Work()
    return norm(numbers, made.size, given.size // made.size, _order(order), _dtype(made, numbers), root)


def _renormed(numbers: Numbers, slices: int, each: int, order: Any) -> Work:
    scaled = work(Numbers(numbers.dtype), add=slices, div=slices, mul=(1 + numbers.complex) * slices * each)
    return norm(numbers, slices, each, _order(order), Numbers(numbers.dtype)) + scaled


def _order(order: Any) -> float:
    if order is None or order == "fro":
        return 2.0
    return {"inf": inf, "-inf": -inf}[order] if isinstance(order, str) else float(order)


def _dtype(made: Array | None, numbers: Numbers) -> Numbers:
    return numbers_of(made) if made is not None else Numbers(numbers.dtype)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    long, short = sorted((one, other), key=len, reverse=True)
    short = (1,) * (len(long) - len(short)) + short
    return prod(b if a == 1 else a for a, b in zip(long, short, strict=True))
