"""Normalisations."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import norms
from flopwatch.flops.formulas.onnx.arguments import given, has, result, rows
from flopwatch.flops.formulas.reductions import steps, variance
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


@formula("onnx::BatchNormalization")
def batch_norm(op: Op) -> Work:
    """With given statistics, or in training with those of the batch."""
    array = given(op, "X")
    channels = array.shape[1] if len(array.shape) > 1 else 1
    version = op.arguments.get("since_version", 15)
    if version < 7:
        training = not op.arguments.get("is_test")
    elif version < 14:
        # Without a flag, the outputs tell: statistics come out in training only.
        training = sum(each is not None for each in op.outputs) > 1
    else:
        training = bool(op.arguments.get("training_mode"))
    return norms.batch_norm(array, array.size, channels, training=training)


@formula("onnx::InstanceNormalization")
def instance_norm(op: Op) -> Work:
    """Each channel of each sample for itself (arXiv:1607.08022)."""
    array = given(op, "input")
    channels = array.shape[0] * array.shape[1]
    return norms.batch_norm(array, array.size, channels, training=True, running=False)


@formula("onnx::LayerNormalization")
def layer_norm(op: Op) -> Work:
    """Over the dimensions from `axis` on."""
    array = given(op, "X")
    axis = op.arguments.get("axis", -1)
    return norms.layer_norm(array, array.size, rows(array, axis), bias=has(op, "B"))


@formula("onnx::GroupNormalization")
def group_norm(op: Op) -> Work:
    """Layer normalisation with a group of channels of a sample as a row."""
    array = given(op, "X")
    return norms.layer_norm(array, array.size, array.shape[0] * op.arguments["num_groups"])


@formula("onnx::RMSNormalization", "onnx::SimplifiedLayerNormalization")
def rms_norm(op: Op) -> Work:
    """Over the dimensions from `axis` on."""
    array = given(op, "X")
    return norms.rms_norm(array, array.size, rows(array, op.arguments.get("axis", -1)))


@formula("onnx::MeanVarianceNormalization")
def standardised(op: Op) -> Work:
    """(x - mean)/√variance over `axes`."""
    array = given(op, "X")
    axes = {axis % len(array.shape) for axis in op.arguments.get("axes") or (0, 2, 3)}
    made = 1
    for place, size in enumerate(array.shape):
        made *= 1 if place in axes else size
    # The definition takes E(x²) - E(x)²; counted is the variance of the differences, as for the other normalisations.
    return variance(array, array.size, made) + work(array, sqrt=made, div=array.size, add=made)


@formula("onnx::LpNormalization")
def lp_norm(op: Op) -> Work:
    """x/‖x‖ along an axis: squares, or nothing for the sum of amounts, their sum, a root for p = 2, quotients."""
    array = given(op, "input")
    made = array.size // array.shape[op.arguments.get("axis", -1)] if array.size else 0
    squares = op.arguments.get("p", 2) == 2
    return work(
        array,
        mul=array.size if squares else 0,
        add=steps(array.size, made),
        sqrt=made if squares else 0,
        div=array.size,
    )


@formula("onnx::LRN")
def local_response(op: Op) -> Work:
    """x/(bias + alpha/size·Σ x²)^beta over neighbouring channels, fewer of them at the edges."""
    array = given(op, "X")
    channels, size = array.shape[1], op.arguments["size"]
    before, after = (size - 1) // 2, size // 2
    windows = sum(min(channels - 1, place + after) - max(0, place - before) + 1 for place in range(channels))
    planes = array.size // channels if channels else 0
    return norms.local_response_norm(array, array.size, planes * windows)


def _skipped(op: Op, array: Array) -> Work:
    """input + skip + bias."""
    return work(array, add=array.size * (1 + has(op, "bias")))


@formula("com.microsoft::SkipLayerNormalization")
def skip_layer_norm(op: Op) -> Work:
    """Layer normalisation of input + skip + bias."""
    array = given(op, "input")
    return _skipped(op, array) + norms.layer_norm(array, array.size, rows(array, -1), bias=has(op, "beta"))


@formula("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_rms_norm(op: Op) -> Work:
    """RMS normalisation of input + skip + bias."""
    array = given(op, "input")
    return _skipped(op, array) + norms.rms_norm(array, array.size, rows(array, -1))


@formula("com.microsoft::EmbedLayerNormalization", "com.microsoft::QEmbedLayerNormalization")
def embedding_norm(op: Op) -> Work:
    """Layer normalisation of the sum of what is looked up for words, positions and segments; looking up is free."""
    array = result(op)
    parts = 3 if has(op, "segment_ids") and has(op, "segment_embedding") else 2
    return work(array, add=(parts - 1) * array.size) + norms.layer_norm(array, array.size, rows(array, -1))


@formula("com.microsoft::GroupNorm", "com.microsoft::SkipGroupNorm")
def group_norm_channels(op: Op) -> Work:
    """Group normalisation of X, or of X + skip + bias; then SiLU if asked for."""
    array = given(op, "X")
    found = norms.layer_norm(array, array.size, array.shape[0] * op.arguments["groups"])
    if has(op, "skip"):
        found += _skipped(op, array)
    if op.arguments.get("activation"):
        found += work(array, transcendental=array.size, add=array.size, div=array.size, mul=array.size)
    return found
