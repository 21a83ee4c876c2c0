"""Layers of forks that detection and segmentation brought: boxes, regions, resizing."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, layer, refuse, several, single
from flopwatch.formats.caffe.network import Layer


@layer("PriorBox")
def prior_box(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Boxes of fixed sizes around each place: four numbers each, and as many variances.

    Each smallest size has a square, one more for its largest size, and a box for each other aspect ratio, and for its inverse.
    """
    settings = layer.settings("prior_box_param")
    shape = several(layer, bottoms, 2, 2)[0]
    smallest, largest = settings.numbers("min_size"), settings.numbers("max_size")
    if not smallest:
        refuse(layer, "has no min_size", bottoms)
    if largest and len(largest) != len(smallest):
        refuse(layer, f"has {len(smallest)} min_size and {len(largest)} max_size", bottoms)
    ratios: list[float] = [1.0]
    for ratio in settings.numbers("aspect_ratio"):
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios.append(ratio)
            if settings.flag("flip", True):
                ratios.append(1 / ratio)
    each = len(ratios) * len(smallest) + len(largest)
    places = shape[2] * shape[3]
    told = {"places": places, "smallest": len(smallest), "largest": len(largest), "ratios": len(ratios)}
    return Made(((1, 2, places * each * 4),), {}, told)


@layer("ROIPooling", "PSROIPooling")
def region_pooling(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A grid of a fixed size for each region."""
    features, regions = several(layer, bottoms, 2, 2)
    if layer.type == "ROIPooling":
        settings = layer.settings("roi_pooling_param")
        high, wide, channels = settings.integer("pooled_h", least=1), settings.integer("pooled_w", least=1), features[1]
    else:
        settings = layer.settings("psroi_pooling_param")
        high = wide = settings.integer("group_size", least=1)
        channels = settings.integer("output_dim", least=1)
    return Made(((regions[0], channels, high, wide),))


@layer("Interp")
def interp(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Bilinear resizing with corners aligned: to a size, or by a factor between the outermost points."""
    settings = layer.settings("interp_param")
    shape = several(layer, bottoms, 1, 2)[0]
    if len(shape) != 4:
        refuse(layer, "resizes images of four axes", bottoms)
    if len(bottoms) == 2:
        return Made(((*shape[:2], *bottoms[1][2:]),))
    if "height" in settings:
        return Made(((*shape[:2], settings.integer("height", least=1), settings.integer("width", least=1)),))
    shrink, zoom = settings.integer("shrink_factor", 1, least=1), settings.integer("zoom_factor", 1, least=1)
    room = settings.integer("pad_beg", 0, least=-(2**31)) + settings.integer("pad_end", 0, least=-(2**31))
    sizes: list[int] = []
    for length in shape[2:]:
        shrunk = (length + room - 1) // shrink + 1
        sizes.append(shrunk + (shrunk - 1) * (zoom - 1))
    if any(length < 1 for length in sizes):
        refuse(layer, "leaves nothing of its bottom", bottoms)
    return Made(((*shape[:2], *sizes),))


@layer("Upsample")
def upsample(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Numbers go back to where the second bottom says that they were pooled from."""
    settings = layer.settings("upsample_param")
    batch, channels, height, width = several(layer, bottoms, 1, 2)[0]
    factor = settings.integer("scale", 2, least=1)
    high = settings.integer("upsample_h", height * factor, least=1)
    return Made(((batch, channels, high, settings.integer("upsample_w", width * factor, least=1)),))


@layer("Axpy")
def axpy(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """One factor for each channel of an image, times the second bottom, plus the third."""
    factors, image, other = several(layer, bottoms, 3, 3)
    if factors[:2] != image[:2] or image != other:
        refuse(layer, "needs a factor for each channel and two images of one shape", bottoms)
    return Made((image,))


@layer("AffineChannel")
def affine(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A learned factor and bias for each channel."""
    shape = single(layer, bottoms)
    return Made((shape,), {"weight": (shape[1],), "bias": (shape[1],)})
