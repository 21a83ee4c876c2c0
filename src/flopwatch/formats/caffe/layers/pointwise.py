"""Layers that keep the shape: activations, norms, scales, sums of blobs; and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, axis_of, layer, refuse, several, single, size
from flopwatch.formats.caffe.message import Message
from flopwatch.formats.caffe.network import Layer


@layer("AbsVal", "BNLL", "Sigmoid", "TanH", "Threshold", "ReLU6", "Dropout")
def alike(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The shape of the bottom."""
    return Made((single(layer, bottoms),))


@layer("ReLU")
def relu(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """With a slope below zero, if one is given."""
    slope = layer.settings("relu_param").number("negative_slope", 0.0)
    return Made((single(layer, bottoms),), {}, {"negative_slope": slope})


@layer("ELU")
def elu(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Exponential below zero."""
    return Made((single(layer, bottoms),), {}, {"alpha": layer.settings("elu_param").number("alpha", 1.0)})


@layer("PReLU")
def prelu(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A learned slope below zero, for each channel or for all."""
    shape = single(layer, bottoms)
    shared = layer.settings("prelu_param").flag("channel_shared", False)
    if len(shape) < 2 and not shared:
        refuse(layer, "needs channels", bottoms)
    return Made((shape,), {"slope": (1,) if shared else (shape[1],)})


@layer("Power")
def power(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """(shift + scale · x) to a power."""
    settings = layer.settings("power_param")
    return Made((single(layer, bottoms),), {}, _numbers(settings, power=1.0, scale=1.0, shift=0.0))


@layer("Exp", "Log")
def exponential(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A power of a base, e by default, or the logarithm to it, of shift + scale · x."""
    settings = layer.settings(f"{layer.type.lower()}_param")
    return Made((single(layer, bottoms),), {}, _numbers(settings, base=-1.0, scale=1.0, shift=0.0))


@layer("LRN")
def response_norm(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Across `local_size` channels, or within a channel over that many rows and columns."""
    settings = layer.settings("lrn_param")
    length = settings.integer("local_size", 5, least=1)
    if not length % 2:
        refuse(layer, f"needs an odd local_size, not {length}", bottoms)
    region = settings.choice("norm_region", ("ACROSS_CHANNELS", "WITHIN_CHANNEL"), "ACROSS_CHANNELS")
    shape = single(layer, bottoms)
    if len(shape) != 4:
        refuse(layer, "normalises images of four axes", bottoms)
    return Made((shape,), {}, {"local_size": length, "region": region, **_numbers(settings, k=1.0)})


@layer("BatchNorm")
def batch_norm(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Kept mean and variance of each channel and the factor that both were summed with; outside of training they are used."""
    shape = single(layer, bottoms)
    channels = shape[1] if len(shape) > 1 else 1
    kept = layer.settings("batch_norm_param").flag("use_global_stats", True)
    buffers: dict[str, Shape] = {"mean": (channels,), "variance": (channels,), "factor": (1,)}
    return Made((shape,), {}, {"kept": kept}, buffers)


@layer("Scale")
def scale(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Times a learned vector, by default one number for each channel, or times the second bottom; plus a bias if one is asked for."""
    settings = layer.settings("scale_param")
    shape = several(layer, bottoms, 1, 2)[0]
    factors = _along(layer, settings, bottoms)
    weights: dict[str, Shape] = {} if len(bottoms) == 2 else {"weight": factors}
    if settings.flag("bias_term", False):
        weights["bias"] = factors
    return Made((shape,), weights)


@layer("Bias")
def bias(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Plus a learned vector, by default one number for each channel, or plus the second bottom."""
    shape = several(layer, bottoms, 1, 2)[0]
    addends = _along(layer, layer.settings("bias_param"), bottoms)
    return Made((shape,), {} if len(bottoms) == 2 else {"bias": addends})


@layer("Eltwise")
def eltwise(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Product, weighted sum or maximum of blobs of one shape."""
    settings = layer.settings("eltwise_param")
    first = several(layer, bottoms, 1)[0]
    if any(shape != first for shape in bottoms):
        refuse(layer, "needs bottoms of one shape", bottoms)
    operation = settings.choice("operation", ("PROD", "SUM", "MAX"), "SUM")
    factors = settings.numbers("coeff")
    if factors and len(factors) != len(bottoms):
        refuse(layer, f"has {len(factors)} factors for {len(bottoms)} bottoms", bottoms)
    return Made((first,), {}, {"operation": operation, "coeff": factors})


@layer("Softmax")
def softmax(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Along one axis, by default the channels."""
    shape = single(layer, bottoms)
    axis = axis_of(layer, layer.settings("softmax_param").integer("axis", 1, least=-9), shape)
    return Made((shape,), {}, {"axis": axis})


@layer("MVN")
def mean_variance(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Mean and perhaps variance of each image's channel, or of the whole image, taken out."""
    settings = layer.settings("mvn_param")
    shape = single(layer, bottoms)
    rows = shape[0] if settings.flag("across_channels", False) else size(shape[:2])
    return Made((shape,), {}, {"rows": rows, "variance": settings.flag("normalize_variance", True)})


@layer("Normalize")
def normalize(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Divided by the length of all of an image, or of the channels at each place; times a learned factor for each channel or for all."""
    settings = layer.settings("norm_param")
    shape = single(layer, bottoms)
    across = settings.flag("across_spatial", True)
    shared = settings.flag("channel_shared", True)
    rows = shape[0] if across else size(shape) // shape[1]
    return Made((shape,), {"weight": (1,) if shared else (shape[1],)}, {"rows": rows})


@layer("Reduction")
def reduction(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """All axes from one on become a single number."""
    settings = layer.settings("reduction_param")
    shape = single(layer, bottoms)
    axis = axis_of(layer, settings.integer("axis", 0, least=-9), shape)
    operation = settings.choice("operation", ("", "SUM", "ASUM", "SUMSQ", "MEAN"), "SUM")
    return Made((shape[:axis],), {}, {"operation": operation, **_numbers(settings, coeff=1.0)})


@layer("ArgMax")
def argmax(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Places of the largest numbers, of an axis or of everything after the first, perhaps beside the numbers themselves."""
    settings = layer.settings("argmax_param")
    shape = single(layer, bottoms)
    top, valued = settings.integer("top_k", 1, least=1), settings.flag("out_max_val", False)
    if "axis" in settings:
        axis = axis_of(layer, settings.integer("axis", least=-9), shape)
        told = {"top_k": top, "rows": size(shape) // shape[axis]}
        return Made(((*shape[:axis], top, *shape[axis + 1 :]),), {}, told)
    after = (1,) * max(len(shape) - 3, 0)
    return Made(((shape[0], 2 if valued else 1, top, *after),), {}, {"top_k": top, "rows": shape[0]})


def _along(layer: Layer, settings: Message, bottoms: Sequence[Shape]) -> Shape:
    """The shape of what a blob is multiplied with: `num_axes` of its axes from `axis` on, or the second bottom."""
    shape = bottoms[0]
    axis = axis_of(layer, settings.integer("axis", 1, least=-9), shape)
    if len(bottoms) == 2:
        if bottoms[1] != shape[axis : axis + len(bottoms[1])]:
            refuse(layer, "needs a second bottom that is as long as some axes of the first", bottoms)
        return bottoms[1]
    count = settings.integer("num_axes", 1, least=-1)
    if count > len(shape) - axis:
        refuse(layer, f"covers {count} axes from axis {axis} on, more than there are", bottoms)
    return shape[axis:] if count == -1 else shape[axis : axis + count]


def _numbers(settings: Message, **defaults: float) -> dict[str, float]:
    return {name: settings.number(name, default) for name, default in defaults.items()}
