"""Losses and their gradients."""

from __future__ import annotations

from collections.abc import Callable

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import losses
from flopwatch.flops.formulas.activations import absolute
from flopwatch.flops.formulas.aten.pointwise import broadcast, of_table, result
from flopwatch.flops.formulas.elementwise import functions
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


def _pointwise(name: str, *operators: str) -> None:
    @formula(*operators)
    def loss(op: Op) -> Work:
        given = op.arguments
        return losses.pointwise(name, result(op), broadcast(given["self"], given["target"]), given["reduction"])


_pointwise("mse", "aten::mse_loss")
_pointwise("smooth_l1", "aten::smooth_l1_loss")
_pointwise("huber", "aten::huber_loss")
_pointwise("soft_margin", "aten::soft_margin_loss")

for _name in ("mse", "smooth_l1", "huber", "soft_margin"):
    formula(f"aten::{_name}_loss_backward")(of_table(functions()[f"{_name}_backward"]))


@formula("aten::l1_loss")
def absolute_error(op: Op) -> Work:
    """|self - target|, of complex numbers too."""
    given = op.arguments
    one, other = given["self"], given["target"]
    elements = broadcast(one, other)
    numbers = numbers_of(other) if numbers_of(other).complex else numbers_of(one)
    differences = work(numbers, add=elements) + absolute(numbers, elements)
    return differences + losses.reduced(result(op), elements, given["reduction"])


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


def _lengths(op: Op) -> tuple[list[int], list[int]] | None:
    """How long inputs and labels are; None if that is data in a tensor."""
    lengths, labels = op.arguments["input_lengths"], op.arguments["target_lengths"]
    return None if isinstance(lengths, Array) or isinstance(labels, Array) else (lengths, labels)


@formula("aten::_ctc_loss")
def connectionist_temporal(op: Op) -> Work | Unknown:
    """The loss of each sample, its lengths given."""
    lengths = _lengths(op)
    return Unknown(op.name) if lengths is None else losses.connectionist_temporal(op.arguments["log_probs"], *lengths)


@formula("aten::_ctc_loss_backward")
def connectionist_temporal_backward(op: Op) -> Work | Unknown:
    """The gradient of the log-probabilities."""
    lengths = _lengths(op)
    if lengths is None:
        return Unknown(op.name)
    array = op.arguments["log_probs"]
    return losses.connectionist_temporal_backward(array, *lengths, classes=array.shape[-1])


@formula("aten::_cudnn_ctc_loss", "aten::miopen_ctc_loss")
def connectionist_temporal_at_once(op: Op) -> Work | Unknown:
    """Loss and gradient together."""
    lengths = _lengths(op)
    if lengths is None:
        return Unknown(op.name)
    array = op.arguments["log_probs"]
    forward = losses.connectionist_temporal(array, *lengths)
    return forward + losses.connectionist_temporal_backward(array, *lengths, classes=array.shape[-1])
