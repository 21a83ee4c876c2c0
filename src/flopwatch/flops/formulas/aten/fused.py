"""Fused steps of optimizers, and the scaling of losses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula, numbers_of, optimisers, work
from flopwatch.flops.formulas.work import Numbers, total


@formula("aten::_fused_adam")
def adam(op: Op) -> Work:
    """Adam; decay is added to the gradient."""
    return _adam(op, decoupled=False)


@formula("aten::_fused_adamw")
def adamw(op: Op) -> Work:
    """AdamW; parameters decay by themselves."""
    return _adam(op, decoupled=True)


@formula("aten::_fused_sgd")
def sgd(op: Op) -> Work:
    """Gradient descent, with or without momentum."""
    given = op.arguments
    return _over(
        given["self"],
        partial(
            optimisers.sgd,
            rate=None if isinstance(given["lr"], Array) else given["lr"],
            decay=given["weight_decay"],
            momentum=given["momentum"],
            dampening=given["dampening"],
            nesterov=bool(given["nesterov"]),
            first=bool(given["is_first_step"]),
            scaled=given.get("grad_scale") is not None,
        ),
    )


@formula("aten::_fused_adagrad")
def adagrad(op: Op) -> Work:
    """Adagrad."""
    given = op.arguments
    scaled = given.get("grad_scale") is not None
    return _over(given["self"], partial(optimisers.adagrad, decay=bool(given["weight_decay"]), scaled=scaled))


@formula("aten::_amp_foreach_non_finite_check_and_unscale")
def unscale(op: Op) -> Work:
    """Each gradient by the inverse of the loss scale; that all are finite is compared, which is free."""
    return total(work(numbers, mul=elements) for numbers, elements in _sizes(op.arguments["self"]).items())


@formula("aten::_amp_update_scale")
def update_scale(op: Op) -> Work:
    """The loss scale grows or shrinks by a factor: one product, though most steps leave it."""
    return work(op.arguments["self"], mul=1)


def _adam(op: Op, decoupled: bool) -> Work:
    given = op.arguments
    return _over(
        given["self"],
        partial(
            optimisers.adam,
            decay=bool(given["weight_decay"]),
            decoupled=decoupled,
            amsgrad=bool(given["amsgrad"]),
            scaled=given.get("grad_scale") is not None,
        ),
    )


def _over(parameters: list[Array], step: Callable[[Numbers, int], Work]) -> Work:
    return total(step(numbers, elements) for numbers, elements in _sizes(parameters).items())


def _sizes(arrays: list[Array]) -> dict[Numbers, int]:
    """Elements by datatype; a complex one is two real ones here."""
    found: dict[Numbers, int] = {}
    for array in arrays:
        numbers = numbers_of(array)
        real = Numbers(numbers.dtype)
        found[real] = found.get(real, 0) + (1 + numbers.complex) * array.size
    return found
