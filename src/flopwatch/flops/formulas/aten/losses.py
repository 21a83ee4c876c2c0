"""Losses and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import losses
from flopwatch.flops.formulas.aten.pointwise import of_table, result
from flopwatch.flops.formulas.elementwise import functions
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work


def broadcast(*arrays: Array) -> int:
    """Elements of the shape that several are broadcast to."""
    dims = max(len(array.shape) for array in arrays)
    shapes = [(1,) * (dims - len(array.shape)) + array.shape for array in arrays]
    return prod(next((size for size in sizes if size != 1), 1) for sizes in zip(*shapes, strict=True))


def _pointwise(name: str, *operators: str) -> None:
    @formula(*operators)
    def loss(op: Op) -> Work:
        given = op.arguments
        return losses.pointwise(name, result(op), broadcast(given["self"], given["target"]), given["reduction"])


_pointwise("mse", "aten::mse_loss")
_pointwise("l1", "aten::l1_loss")
_pointwise("smooth_l1", "aten::smooth_l1_loss")
_pointwise("huber", "aten::huber_loss")
_pointwise("soft_margin", "aten::soft_margin_loss")

for _name in ("mse", "smooth_l1", "huber", "soft_margin"):
    formula(f"aten::{_name}_loss_backward")(of_table(functions()[f"{_name}_backward"]))


@formula("aten::kl_div")
def kl_div(op: Op) -> Work:
    """Σ y·(log y - x), y given as logarithms or not."""
    given = op.arguments
    name = "kl_div_of_logs" if given.get("log_target") else "kl_div"
    return losses.pointwise(name, result(op), broadcast(given["self"], given["target"]), given["reduction"])


def _weighted(function: Callable[..., Work], name: str) -> None:
    @formula(name)
    def loss(op: Op) -> Work:
        given = op.arguments
        return function(result(op), given["self"].size, given["reduction"], weight=given.get("weight") is not None)


_weighted(losses.binary_cross_entropy, "aten::binary_cross_entropy")
_weighted(losses.binary_cross_entropy_backward, "aten::binary_cross_entropy_backward")


@formula("aten::binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(op: Op) -> Work:
    """Of logits, with the weights that there are."""
    given = op.arguments
    return losses.binary_cross_entropy_with_logits(
        result(op),
        given["self"].size,
        given["reduction"],
        weight=given.get("weight") is not None,
        positive_weight=given.get("pos_weight") is not None,
    )


@formula(
    "aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd", "aten::nll_loss_forward", "aten::nll_loss2d_forward"
)
def negative_log_likelihood(op: Op) -> Work:
    """A selection, weighted and reduced."""
    given = op.arguments
    return losses.negative_log_likelihood(
        given["self"], given["target"].size, given["reduction"], weight=given.get("weight") is not None
    )


@formula("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def negative_log_likelihood_backward(op: Op) -> Work:
    """The gradient in the places of the classes."""
    given = op.arguments
    return losses.negative_log_likelihood_backward(
        given["self"], given["target"].size, given["reduction"], weight=given.get("weight") is not None
    )


def _rows(array: Array) -> tuple[int, int]:
    classes = array.shape[-1] if array.shape else 1
    return (array.size // classes if classes else 0), classes


@formula("aten::multi_margin_loss")
def multi_margin(op: Op) -> Work:
    """The margins of all classes but the right one."""
    given = op.arguments
    array = given["self"]
    rows, classes = _rows(array)
    weight = given.get("weight") is not None
    return losses.multi_margin(array, rows, classes, given["reduction"], p=given["p"], weight=weight)


@formula("aten::multi_margin_loss_backward")
def multi_margin_backward(op: Op) -> Work:
    """Their gradients."""
    given = op.arguments
    array = given["self"]
    rows, classes = _rows(array)
    return losses.multi_margin_backward(array, rows, classes, p=given["p"], weight=given.get("weight") is not None)


@formula("aten::_ctc_loss", "aten::_cudnn_ctc_loss", "aten::miopen_ctc_loss")
def connectionist_temporal(op: Op) -> Work | Unknown:
    """Known if the lengths are: they may be data in a tensor."""
    given = op.arguments
    lengths, labels = given["input_lengths"], given["target_lengths"]
    if isinstance(lengths, Array) or isinstance(labels, Array):
        return Unknown(op.name)
    return losses.connectionist_temporal(given["log_probs"], lengths, labels)
