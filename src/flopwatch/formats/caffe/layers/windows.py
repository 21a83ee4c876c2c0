"""Layers that slide a window: convolution, its transpose, pooling, pyramids of it, im2col."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, axis_of, layer, refuse, several, single, size
from flopwatch.formats.caffe.message import Message
from flopwatch.formats.caffe.network import Layer

_POOLS = ("MAX", "AVE", "STOCHASTIC")


@layer("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution", "Deconvolution", "DeconvolutionDepthwise")
def convolution(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Weights are out x in / group x kernel, of the transposed one in x out / group x kernel; both round the output down."""
    settings = layer.settings("convolution_param")
    first = several(layer, bottoms, 1)[0]
    if any(shape != first for shape in bottoms):
        refuse(layer, "needs bottoms of one shape", bottoms)
    if len(layer.tops) != len(bottoms):
        refuse(layer, f"makes a blob of each bottom: {len(bottoms)}, not {len(layer.tops)}", bottoms)
    axis = axis_of(layer, settings.integer("axis", 1, least=-9), first)
    channels, spatial = first[axis], first[axis + 1 :]
    outputs = settings.integer("num_output", least=1)
    kernel, stride, pad, dilation = _windows(layer, settings, len(spatial))
    group = settings.integer("group", 1, least=1)
    if "Depthwise" in layer.type:
        group = channels
    if channels % group or outputs % group:
        refuse(layer, f"cannot part {channels} channels and {outputs} outputs into {group} groups", bottoms)
    transposed = layer.type.startswith("Deconvolution")
    sizes: list[int] = []
    for length, k, s, p, d in zip(spatial, kernel, stride, pad, dilation, strict=True):
        extent = d * (k - 1) + 1
        sizes.append(s * (length - 1) + extent - 2 * p if transposed else (length + 2 * p - extent) // s + 1)
    if any(length < 1 for length in sizes):
        refuse(layer, f"leaves nothing of its bottom with a kernel of {kernel}", bottoms)
    ends = (channels, outputs // group) if transposed else (outputs, channels // group)
    weights: dict[str, Shape] = {"weight": (*ends, *kernel)}
    if settings.flag("bias_term", True):
        weights["bias"] = (outputs,)
    top = (*first[:axis], outputs, *sizes)
    told = {"axis": axis, "stride": stride, "pad": pad, "dilation": dilation, "group": group}
    return Made((top,) * len(bottoms), weights, told)


@layer("Im2col")
def im2col(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Each window becomes a column: channels x taps of the kernel at each position."""
    settings = layer.settings("convolution_param")
    first = single(layer, bottoms)
    axis = axis_of(layer, settings.integer("axis", 1, least=-9), first)
    kernel, stride, pad, dilation = _windows(layer, settings, len(first) - axis - 1)
    sizes = [
        (length + 2 * p - d * (k - 1) - 1) // s + 1
        for length, k, s, p, d in zip(first[axis + 1 :], kernel, stride, pad, dilation, strict=True)
    ]
    if any(length < 1 for length in sizes):
        refuse(layer, f"leaves nothing of its bottom with a kernel of {kernel}", bottoms)
    return Made(((*first[:axis], first[axis] * size(kernel), *sizes),))


@layer("Pooling")
def pooling(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Rounds the output up; with padding the last window is dropped if it would begin outside of image and padding before it."""
    settings = layer.settings("pooling_param")
    shape = single(layer, bottoms)
    if len(shape) != 4:
        refuse(layer, "pools images of four axes", bottoms)
    spatial = shape[2:]
    kernel: Shape
    stride: Shape
    pad: Shape
    method = settings.choice("pool", _POOLS, "MAX")
    if settings.flag("global_pooling", False):
        kernel, stride, pad = spatial, (1, 1), (0, 0)
    else:
        kernel = _pair(settings, "kernel_size", "kernel", None)
        stride = _pair(settings, "stride", "stride", 1)
        pad = _pair(settings, "pad", "pad", 0)
    if any(p >= k for p, k in zip(pad, kernel, strict=True)):
        refuse(layer, f"pads {pad}, no less than its kernel of {kernel}", bottoms)
    up = settings.flag("ceil_mode", True) and settings.choice("round_mode", ("CEIL", "FLOOR"), "CEIL") == "CEIL"
    sizes = [
        _pooled(length, k, s, p, up, any(pad)) for length, k, s, p in zip(spatial, kernel, stride, pad, strict=True)
    ]
    if any(length < 1 for length in sizes):
        refuse(layer, f"leaves nothing of its bottom with a kernel of {kernel}", bottoms)
    top = (*shape[:2], *sizes)
    # A second top holds the places of the maxima, or at least has their shape.
    return Made((top, top), {}, {"method": method, "kernel": kernel, "stride": stride, "pad": pad})


def _pooled(length: int, kernel: int, stride: int, pad: int, up: bool, padded: bool) -> int:
    room = length + 2 * pad - kernel
    positions = (-(-room // stride) if up else room // stride) + 1
    if padded and (positions - 1) * stride >= length + pad:
        positions -= 1
    return positions


@layer("SPP")
def pyramid(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Spatial pyramid pooling: level i pools to 2^i x 2^i bins, padded so that windows tile the image; all levels side by side."""
    settings = layer.settings("spp_param")
    shape = single(layer, bottoms)
    if len(shape) != 4:
        refuse(layer, "pools images of four axes", bottoms)
    method = settings.choice("pool", _POOLS, "MAX")
    levels: list[tuple[Shape, Shape]] = []
    for level in range(settings.integer("pyramid_height", least=1)):
        bins = 2**level
        if bins > min(shape[2:]):
            refuse(layer, f"has a level of {bins} x {bins} bins, more than its bottom has numbers", bottoms)
        kernel = tuple(-(-length // bins) for length in shape[2:])
        pad = tuple((k * bins - length + 1) // 2 for k, length in zip(kernel, shape[2:], strict=True))
        if any(p >= k for p, k in zip(pad, kernel, strict=True)):
            refuse(layer, f"has a level of {bins} x {bins} bins, too many for its bottom", bottoms)
        levels.append((kernel, pad))
    bins = sum(4**level for level in range(len(levels)))
    top = (shape[0], shape[1] * bins) if len(levels) > 1 else (*shape[:2], 1, 1)
    return Made((top,), {}, {"method": method, "levels": tuple(levels)})


def _windows(layer: Layer, settings: Message, axes: int) -> tuple[Shape, Shape, Shape, Shape]:
    if axes < 1:
        refuse(layer, "has no spatial axis to slide over")
    kernel = _each(layer, settings, "kernel_size", "kernel", axes, None)
    stride = _each(layer, settings, "stride", "stride", axes, 1)
    pad = _each(layer, settings, "pad", "pad", axes, 0)
    return kernel, stride, pad, _each(layer, settings, "dilation", "", axes, 1)


def _each(layer: Layer, settings: Message, name: str, side: str, axes: int, default: int | None) -> Shape:
    """A size for each spatial axis: written once for all, once for each, or as _h and _w."""
    if side and (f"{side}_h" in settings or f"{side}_w" in settings):
        if axes != 2:
            refuse(layer, f"speaks of {side}_h and {side}_w, but has {axes} spatial axes")
        return _pair(settings, name, side, default)
    found = settings.integers(name, least=0 if default == 0 else 1)
    if not found:
        return (settings.integer(name, default),) * axes
    if len(found) not in (1, axes):
        refuse(layer, f"has {len(found)} values of {name} for {axes} spatial axes")
    return found * axes if len(found) == 1 else found


def _pair(settings: Message, name: str, side: str, default: int | None) -> Shape:
    """Height and width: name for both, or side_h and side_w. Where only one side is written, `name` or the default is the other."""
    least = 0 if default == 0 else 1
    high, wide = f"{side}_h", f"{side}_w"
    if high in settings and wide in settings:
        return settings.integer(high, least=least), settings.integer(wide, least=least)
    both = settings.integer(name, 0 if high in settings or wide in settings else default, least=0)
    pair = settings.integer(high, both, least=least), settings.integer(wide, both, least=least)
    for side_name, length in zip((high, wide), pair, strict=True):
        if length < least:
            settings.place.refuse(f"{settings.name!r} does not say its {side_name}", todo=f"Write {side_name}: N.")
    return pair
