"""Batch, layer, group, instance, RMS and weight normalisation, in all the forms that kernels for them have."""

from __future__ import annotations

from math import prod
from typing import Any, TypedDict

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import norms, reductions
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


def channels_of(array: Array) -> int:
    """The channels of a batch: dimension 1."""
    return array.shape[1] if len(array.shape) > 1 else 1


class _Affine(TypedDict):
    weight: bool
    bias: bool


def _affine(op: Op) -> _Affine:
    """Whether what was normalised is multiplied by a weight, and whether a bias is added."""
    return {"weight": op.arguments.get("weight") is not None, "bias": op.arguments.get("bias") is not None}


def _batch_norm(op: Op, *, training: bool) -> Work:
    given = op.arguments
    array = given["input"]
    return norms.batch_norm(
        array,
        array.size,
        channels_of(array),
        training=training,
        running=given.get("running_mean") is not None,
        **_affine(op),
    )


@formula(
    "aten::batch_norm",
    "aten::_batch_norm_impl_index",
    "aten::native_batch_norm",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_functional",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
)
def batch_norm(op: Op) -> Work:
    """With statistics of the batch if it is training, or if there are no others."""
    return _batch_norm(op, training=op.arguments["training"] or op.arguments.get("running_mean") is None)


@formula("aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional")
def batch_norm_training(op: Op) -> Work:
    """Always in training."""
    return _batch_norm(op, training=True)


@formula("aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update")
def batch_norm_evaluating(op: Op) -> Work:
    """Never in training."""
    return _batch_norm(op, training=op.arguments.get("running_mean") is None)


def _mask(op: Op) -> Any:
    return op.arguments.get("output_mask") or tuple(array is not None for array in op.outputs)


@formula(
    "aten::native_batch_norm_backward",
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm_backward",
    "aten::batch_norm_backward",
    "aten::_batch_norm_impl_index_backward",
)
def batch_norm_backward(op: Op) -> Work:
    """The gradients that are asked for; the forms without a flag are only called in training."""
    given = op.arguments
    array = given["input"]
    return norms.batch_norm_backward(
        array,
        array.size,
        channels_of(array),
        training=given.get("train", given.get("update", True)),
        weight=given.get("weight") is not None,
        mask=_mask(op),
    )


@formula("aten::batch_norm_stats")
def batch_norm_statistics(op: Op) -> Work:
    """Mean and 1/σ of the batch."""
    array = op.arguments["input"]
    return norms.batch_norm_statistics(array, array.size, channels_of(array))


@formula("aten::batch_norm_update_stats")
def batch_norm_update(op: Op) -> Work:
    """Mean and variance of the batch, and the running ones."""
    array = op.arguments["input"]
    channels = channels_of(array)
    made = reductions.variance(array, array.size, channels)
    if op.arguments.get("running_mean") is None:
        return made
    return made + norms.running_statistics(array, channels)


@formula("aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts")
def batch_norm_joined(op: Op) -> Work:
    """Statistics of all devices from those of each, (devices, channels), and the running ones."""
    means = op.arguments["mean"]
    parts, channels = means.shape
    made = norms.joined_statistics(means, parts, channels)
    if op.arguments.get("running_mean") is None:
        return made
    return made + norms.running_statistics(means, channels)


@formula("aten::batch_norm_elemt")
def batch_norm_apply(op: Op) -> Work:
    """x·a + b, the statistics given."""
    given = op.arguments
    array = given["input"]
    return norms.scale_and_shift(
        array,
        array.size,
        channels_of(array),
        **_affine(op),
    )


@formula("aten::batch_norm_backward_reduce")
def batch_norm_backward_sums(op: Op) -> Work:
    """Σ g and Σ g·(x - mean), of the latter the weight's gradient."""
    given = op.arguments
    array = given["input"]
    channels = channels_of(array)
    made = norms.batch_norm_sums(array, array.size, channels, bias=True, weight=True)
    return made + work(array, mul=channels) if given["weight_g"] else made


@formula("aten::batch_norm_backward_elemt")
def batch_norm_backward_apply(op: Op) -> Work:
    """The gradient of the input, the sums given."""
    given = op.arguments
    array = given["input"]
    return norms.batch_norm_backward_input(
        array, array.size, channels_of(array), weight=given.get("weight") is not None
    )


@formula("aten::instance_norm")
def instance_norm(op: Op) -> Work:
    """Batch normalisation with each channel of each sample for itself (arXiv:1607.08022).

    Running statistics are updated for each sample, then their means over the batch are kept.
    """
    given = op.arguments
    array = given["input"]
    channels = array.shape[0] * array.shape[1]
    running = given.get("running_mean") is not None
    training = given["use_input_stats"]
    made = norms.batch_norm(
        array,
        array.size,
        channels,
        training=training,
        running=running,
        **_affine(op),
    )
    return made + 2 * reductions.mean(array, channels, array.shape[1]) if running and training else made


def _rows(array: Array, normalized: Any) -> int:
    size = prod(normalized)
    return array.size // size if size else 0


@formula("aten::native_layer_norm", "aten::layer_norm")
def layer_norm(op: Op) -> Work:
    """Over the last dimensions."""
    given = op.arguments
    array = given["input"]
    return norms.layer_norm(
        array,
        array.size,
        _rows(array, given["normalized_shape"]),
        **_affine(op),
    )


@formula("aten::native_layer_norm_backward")
def layer_norm_backward(op: Op) -> Work:
    """The gradients that are asked for."""
    given = op.arguments
    array = given["input"]
    return norms.layer_norm_backward(
        array,
        array.size,
        _rows(array, given["normalized_shape"]),
        prod(given["normalized_shape"]),
        weight=given.get("weight") is not None,
        mask=_mask(op),
    )


@formula("aten::native_group_norm", "aten::group_norm")
def group_norm(op: Op) -> Work:
    """Layer normalisation with a group of channels of a sample as a row."""
    given = op.arguments
    array = given["input"]
    groups = given["group"] if "group" in given else given["num_groups"]
    return norms.layer_norm(
        array,
        array.size,
        array.shape[0] * groups,
        **_affine(op),
    )


@formula("aten::native_group_norm_backward")
def group_norm_backward(op: Op) -> Work:
    """The gradients that are asked for."""
    given = op.arguments
    array = given["input"]
    return norms.layer_norm_backward(
        array,
        array.size,
        given["N"] * given["group"],
        given["C"],
        weight=given.get("weight") is not None,
        mask=_mask(op),
    )


@formula("aten::rms_norm", "aten::_fused_rms_norm")
def rms_norm(op: Op) -> Work:
    """Over the last dimensions."""
    given = op.arguments
    array = given["input"]
    rows = _rows(array, given["normalized_shape"])
    return norms.rms_norm(array, array.size, rows, weight=given.get("weight") is not None)


@formula("aten::_fused_rms_norm_backward")
def rms_norm_backward(op: Op) -> Work:
    """The gradients that are asked for."""
    given = op.arguments
    array = given["input"]
    return norms.rms_norm_backward(
        array,
        array.size,
        _rows(array, given["normalized_shape"]),
        prod(given["normalized_shape"]),
        weight=given.get("weight") is not None,
        mask=_mask(op),
    )


@formula("aten::_weight_norm_interface", "aten::_weight_norm")
def weight_norm(op: Op) -> Work:
    """v·g/‖v‖, g one for each row."""
    vectors = op.arguments["v"]
    return norms.weight_norm(vectors, vectors.size, op.arguments["g"].size)


@formula("aten::_weight_norm_interface_backward")
def weight_norm_backward(op: Op) -> Work:
    """The gradients of v and g."""
    vectors = op.arguments["saved_v"]
    return norms.weight_norm_backward(vectors, vectors.size, op.arguments["saved_g"].size)
