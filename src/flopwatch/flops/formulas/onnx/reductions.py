"""Sums and extremes over dimensions, softmax, running sums, losses."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import losses, reductions
from flopwatch.flops.formulas.onnx.arguments import given, has, lines, result, rows
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Numbers, Work, work

Reduction = Callable[[Numbers | Array, int, int], Work]


def _sum_of_logs(numbers: Numbers | Array, taken: int, made: int) -> Work:
    return reductions.summed(numbers, taken, made) + work(numbers, transcendental=made)


def _euclidean(numbers: Numbers | Array, taken: int, made: int) -> Work:
    return _squares(numbers, taken, made) + work(numbers, sqrt=made)


def _squares(numbers: Numbers | Array, taken: int, made: int) -> Work:
    return reductions.summed(numbers, taken, made) + work(numbers, mul=taken)


_KINDS: dict[str, Reduction] = {
    "ReduceSum": reductions.summed,
    "ReduceMean": reductions.mean,
    "ReduceProd": reductions.multiplied,
    "ReduceMax": reductions.extreme,
    "ReduceMin": reductions.extreme,
    "ArgMax": reductions.extreme,
    "ArgMin": reductions.extreme,
    "ReduceL1": reductions.summed,
    "ReduceL2": _euclidean,
    "ReduceSumSquare": _squares,
    "ReduceLogSum": _sum_of_logs,
    "ReduceLogSumExp": reductions.logsumexp,
}


def _bind(kind: str, function: Reduction) -> None:
    @formula(f"onnx::{kind}")
    def reduced(op: Op) -> Work | Free:
        taken = given(op, "data")
        if op.arguments.get("noop_with_empty_axes") and not has(op, "axes") and kind[-4:] in ("eSum", "Mean"):
            return Free("nothing to reduce", moves=False)
        return function(taken, taken.size, result(op).size)


for _kind, _function in _KINDS.items():
    _bind(_kind, _function)


def _softmax_rows(op: Op, array: Array) -> int:
    """Rows of a softmax: along an axis; before version 13, all dimensions from the axis on are one row."""
    if op.arguments.get("since_version", 13) < 13:
        return rows(array, op.arguments.get("axis", 1))
    return lines(array, op.arguments.get("axis", -1))


@formula("onnx::Softmax")
def softmax(op: Op) -> Work:
    """exp(x - max)/Σ."""
    array = result(op)
    return reductions.softmax(array, array.size, _softmax_rows(op, array))


@formula("onnx::LogSoftmax")
def log_softmax(op: Op) -> Work:
    """x - max - log Σ."""
    array = result(op)
    return reductions.log_softmax(array, array.size, _softmax_rows(op, array))


@formula("onnx::Hardmax")
def hardmax(op: Op) -> Work:
    """1 where the maximum lies, else 0."""
    array = result(op)
    return reductions.extreme(array, array.size, _softmax_rows(op, array))


@formula("com.microsoft::BiasSoftmax")
def bias_softmax(op: Op) -> Work:
    """Softmax of data + bias, all dimensions from the axis on one row."""
    array = result(op)
    whole = rows(array, op.arguments.get("axis", 1))
    return work(array, add=array.size) + reductions.softmax(array, array.size, whole)


@formula("onnx::CumSum", "onnx::CumProd")
def running(op: Op) -> Work | Unknown:
    """The results of the first 1, 2, … n numbers of each line: n - 1 operations, one less if a number's own is left out."""
    array = given(op, "x")
    where = op.arguments.get("axis_value")
    axis = where[0] if where else None
    if not array.size or not array.shape:
        return Work()
    if axis is None and len(array.shape) > 1:
        return Unknown(f"{op.name} along an axis that is not known")
    length = array.shape[axis or 0]
    steps = array.size // length * max(0, length - 1 - bool(op.arguments.get("exclusive")))
    return work(array, mul=steps) if op.name.endswith("CumProd") else work(array, add=steps)


_REDUCTION = {"none": losses.Reduction.NONE, "mean": losses.Reduction.MEAN, "sum": losses.Reduction.SUM}


@formula("onnx::NegativeLogLikelihoodLoss")
def likelihood(op: Op) -> Work:
    """-w_y·x_y for the class y of each sample and position, and their mean or sum."""
    scores = given(op, "input")
    how = _REDUCTION[op.arguments.get("reduction", "mean")]
    return losses.negative_log_likelihood(scores, _samples(scores), how, weight=has(op, "weight"))


@formula("onnx::SoftmaxCrossEntropyLoss")
def cross_entropy(op: Op) -> Work:
    """The same of the logarithm of a softmax over classes."""
    scores = given(op, "scores")
    how = _REDUCTION[op.arguments.get("reduction", "mean")]
    found = losses.negative_log_likelihood(scores, _samples(scores), how, weight=has(op, "weights"))
    return reductions.log_softmax(scores, scores.size, _samples(scores)) + found


def _samples(scores: Array) -> int:
    return scores.shape[0] * prod(scores.shape[2:])
