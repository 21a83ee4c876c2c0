"""Sums, extremes, variances, softmax."""

from __future__ import annotations

from collections.abc import Callable

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import reductions
from flopwatch.flops.formulas.aten.pointwise import result
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Numbers, Work, numbers_of, work

Reduction = Callable[[Numbers | Array, int, int], Work]


def _taken(op: Op) -> Array:
    """What is reduced, called "inp" by the primitive operators."""
    given = op.arguments
    array: Array = given["self"] if "self" in given else given["inp"]
    return array


def _of_result(function: Reduction, *names: str) -> None:
    """Bind a reduction that computes on the datatype of its result (`dtype=` may have changed it)."""

    @formula(*names)
    def reduction(op: Op) -> Work:
        array = result(op)
        return function(array, _taken(op).size, array.size)


def _of_input(function: Reduction, *names: str) -> None:
    """Bind a reduction that computes on the datatype of its input: the result may be a place, an integer."""

    @formula(*names)
    def reduction(op: Op) -> Work:
        taken = _taken(op)
        return function(taken, taken.size, result(op).size)


_of_result(reductions.summed, "aten::sum", "aten::nansum", "prims::sum")
_of_result(reductions.mean, "aten::mean", "aten::nanmean")
_of_result(reductions.multiplied, "aten::prod", "prims::prod")
_of_result(reductions.logsumexp, "aten::logsumexp", "aten::special_logsumexp")
_of_input(reductions.extreme, "aten::amax", "aten::amin", "aten::argmax", "aten::argmin", "prims::amax", "prims::amin")


@formula("aten::max", "aten::min")
def extreme(op: Op) -> Work:
    """The maximum over dimensions, or of two tensors."""
    if isinstance(op.arguments.get("other"), Array):
        array = result(op)
        return work(array, minmax=array.size)
    taken = op.arguments["self"]
    return reductions.extreme(taken, taken.size, result(op).size)


@formula("aten::aminmax", "aten::_aminmax")
def both_extremes(op: Op) -> Work:
    """Minimum and maximum."""
    taken = op.arguments["self"]
    return 2 * reductions.extreme(taken, taken.size, result(op).size)


@formula("aten::var", "aten::var_mean", "prims::var")
def variance(op: Op) -> Work:
    """The variance; the mean is made for it anyway. Of complex numbers, both parts."""
    return _variance(op, root=False)


@formula("aten::std", "aten::std_mean")
def deviation(op: Op) -> Work:
    """The root of the variance."""
    return _variance(op, root=True)


def _variance(op: Op, *, root: bool) -> Work:
    taken = _taken(op)
    numbers, made = numbers_of(taken), result(op).size
    if not numbers.complex:
        return reductions.variance(numbers, taken.size, made, root=root)
    # That of the real parts and that of the imaginary ones, added.
    real = Numbers(numbers.dtype)
    both = 2 * reductions.variance(real, taken.size, made)
    return both + work(real, add=made, sqrt=made if root else 0)


def rows_of(array: Array, dim: int) -> int:
    """Rows along a dimension, none if there are no elements."""
    if not array.shape:
        return 1
    return array.size // array.shape[dim] if array.size else 0


@formula("aten::_softmax", "aten::softmax", "aten::special_softmax", "aten::_safe_softmax")
def softmax(op: Op) -> Work:
    """exp(x - max)/Σ; the safe one puts 0 for rows that are masked altogether, a selection."""
    array = result(op)
    return reductions.softmax(array, array.size, rows_of(array, op.arguments["dim"]))


@formula("aten::_masked_softmax")
def masked_softmax(op: Op) -> Work:
    """Softmax with elements left out: all are computed, which ones are masked is written in data."""
    array, dim = result(op), op.arguments.get("dim")
    return reductions.softmax(array, array.size, rows_of(array, -1 if dim is None else dim))


@formula("aten::_softmax_backward_data", "aten::_masked_softmax_backward")
def softmax_backward(op: Op) -> Work:
    """output·(grad - Σ output·grad)."""
    array, dim = op.arguments["grad_output"], op.arguments.get("dim")
    return reductions.softmax_backward(array, array.size, rows_of(array, -1 if dim is None else dim))


@formula("aten::_log_softmax", "aten::log_softmax", "aten::special_log_softmax")
def log_softmax(op: Op) -> Work:
    """x - max - log Σ."""
    array = result(op)
    return reductions.log_softmax(array, array.size, rows_of(array, op.arguments["dim"]))


@formula("aten::_log_softmax_backward_data")
def log_softmax_backward(op: Op) -> Work:
    """grad - exp(output)·Σ grad."""
    array = op.arguments["grad_output"]
    return reductions.log_softmax_backward(array, array.size, rows_of(array, op.arguments["dim"]))
