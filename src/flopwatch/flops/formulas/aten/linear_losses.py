"""A dense layer and its cross-entropy as one operator, which makes the gradients on the way forward."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import losses, reductions
from flopwatch.flops.formulas.losses import Reduction
from flopwatch.flops.formulas.products import linear
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


@formula("torch_nn::_linear_cross_entropy_batch_chunked", "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def linear_cross_entropy(op: Op) -> Work | Unknown:
    """What the layer, log-softmax, the selection and the gradients that are asked for cost as operators of their own.

    Unknown for targets that are probabilities and for smoothed ones.
    """
    given = op.arguments
    inputs: Array = given["input"]
    target: Array = given["target"]
    if numbers_of(target).dtype.floating or given.get("label_smoothing"):
        return Unknown(op.name)
    rows, width = inputs.shape
    classes = given["linear_weight"].shape[0]
    bias, weight = given.get("linear_bias") is not None, given.get("weight") is not None
    reduction = Reduction[given.get("reduction", "none").upper()]
    dense = linear(inputs, rows, width, classes, bias=bias)
    made = dense + reductions.log_softmax(inputs, rows * classes, rows)
    made += losses.negative_log_likelihood(inputs, rows, reduction, weight=weight)
    products = bool(given.get("compute_input_grad")) + bool(given.get("compute_linear_weight_grad"))
    sums = bool(given.get("compute_linear_bias_grad"))
    if products or sums:
        made += losses.negative_log_likelihood_backward(inputs, rows, reduction, weight=weight)
        made += reductions.log_softmax_backward(inputs, rows * classes, rows)
        made += work(inputs, mac=products * dense.mac)
    return made + reductions.summed(inputs, rows * classes, classes) if sums else made
