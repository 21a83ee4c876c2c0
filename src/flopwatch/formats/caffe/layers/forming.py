"""Layers that move or rename numbers: joining, cutting, reshaping."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from flopwatch.formats.caffe.layers.rules import Made, Shape, axis_of, layer, refuse, several, shown, single, size
from flopwatch.formats.caffe.network import Layer


@layer("Concat")
def concat(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """All bottoms along one axis, by default the channels; all other sizes agree."""
    settings = layer.settings("concat_param")
    first = several(layer, bottoms, 1)[0]
    axis = axis_of(layer, settings.integer("axis", settings.integer("concat_dim", 1), least=-9), first)
    for shape in bottoms[1:]:
        if len(shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, shape, strict=True)) if i != axis
        ):
            refuse(layer, f"joins along axis {axis} what differs elsewhere too", bottoms)
    return Made(((*first[:axis], sum(shape[axis] for shape in bottoms), *first[axis + 1 :]),))


@layer("Slice")
def cut(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Cut along one axis, at the given points or evenly."""
    settings = layer.settings("slice_param")
    shape = single(layer, bottoms)
    axis = axis_of(layer, settings.integer("axis", settings.integer("slice_dim", 1), least=-9), shape)
    points, length, parts = settings.integers("slice_point"), shape[axis], len(layer.tops)
    if points:
        edges = (0, *points, length)
        if len(points) != parts - 1 or any(low >= high for low, high in pairwise(edges)):
            refuse(layer, f"cannot be cut at {points} into {parts} tops", bottoms)
        sizes = [high - low for low, high in pairwise(edges)]
    else:
        if not parts or length % parts:
            refuse(layer, f"cannot be cut evenly into {parts} tops along axis {axis}", bottoms)
        sizes = [length // parts] * parts
    return Made(tuple((*shape[:axis], each, *shape[axis + 1 :]) for each in sizes))


@layer("Split")
def split(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The same blob under several names."""
    return Made((single(layer, bottoms),) * len(layer.tops))


@layer("Silence")
def silence(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Takes blobs that nobody else wants."""
    return Made(())


@layer("Flatten")
def flatten(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The axes from `axis` to `end_axis` become one."""
    settings = layer.settings("flatten_param")
    shape = single(layer, bottoms)
    start = axis_of(layer, settings.integer("axis", 1, least=-9), shape)
    end = axis_of(layer, settings.integer("end_axis", -1, least=-9), shape)
    if end < start:
        refuse(layer, f"flattens from axis {start} to {end}", bottoms)
    return Made(((*shape[:start], size(shape[start : end + 1]), *shape[end + 1 :]),))


@layer("Reshape")
def reshape(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Some axes get new sizes: 0 copies the size of the bottom, -1 is what remains."""
    settings = layer.settings("reshape_param")
    shape = single(layer, bottoms)
    dims = list(settings.message("shape").integers("dim", least=-1))
    start = axis_of(layer, settings.integer("axis", 0, least=-9), shape, end=True)
    count = settings.integer("num_axes", -1, least=-1)
    stop = len(shape) if count == -1 else start + count
    if stop > len(shape):
        refuse(layer, f"reshapes {count} axes from axis {start} on, more than there are", bottoms)
    for position, each in enumerate(dims):
        if each == 0:
            if start + position >= len(shape):
                refuse(layer, f"copies the size of axis {start + position}, which its bottom has not", bottoms)
            dims[position] = shape[start + position]
    before, after, total = shape[:start], shape[stop:], size(shape)
    if dims.count(-1) > 1:
        refuse(layer, "leaves two sizes open", bottoms)
    if -1 in dims:
        known = size(before) * size(after) * size(each for each in dims if each != -1)
        if not known or total % known:
            refuse(layer, f"cannot make {shown(tuple(dims))} of its bottom", bottoms)
        dims[dims.index(-1)] = total // known
    top = (*before, *dims, *after)
    if size(top) != total:
        refuse(layer, f"cannot make {shown(top)} of its bottom", bottoms, _BATCH)
    return Made((top,))


_BATCH = "A file that reshapes to a fixed batch can be estimated at that batch only."


@layer("Crop")
def crop(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The first bottom cut to the sizes of the second, from `axis` on."""
    settings = layer.settings("crop_param")
    shape, like = several(layer, bottoms, 2, 2)
    axis = axis_of(layer, settings.integer("axis", 2, least=-9), shape)
    if len(shape) != len(like):
        refuse(layer, "needs two bottoms with as many axes", bottoms)
    top = (*shape[:axis], *like[axis:])
    if any(new > old for new, old in zip(top, shape, strict=True)):
        refuse(layer, "crops to more than there is", bottoms)
    return Made((top,))


@layer("Tile")
def tile(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """One axis repeated."""
    settings = layer.settings("tile_param")
    shape = single(layer, bottoms)
    axis = axis_of(layer, settings.integer("axis", 1, least=-9), shape)
    return Made(((*shape[:axis], shape[axis] * settings.integer("tiles", least=1), *shape[axis + 1 :]),))


@layer("Permute")
def permute(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Axes in another order; those that are not named follow."""
    shape = single(layer, bottoms)
    order = list(layer.settings("permute_param").integers("order"))
    if len(set(order)) != len(order) or any(axis >= len(shape) for axis in order):
        refuse(layer, f"cannot order its axes as {order}", bottoms)
    order += [axis for axis in range(len(shape)) if axis not in order]
    return Made((tuple(shape[axis] for axis in order),))


@layer("BatchReindex")
def reindex(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Rows of the first bottom, picked by the second."""
    shape, picked = several(layer, bottoms, 2, 2)
    return Made(((picked[0], *shape[1:]),))


@layer("ShuffleChannel")
def shuffle(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Channels in another order."""
    return Made((single(layer, bottoms),))


@layer("Padding")
def padding(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Zeros around an image; only the oldest format has it as a layer."""
    batch, channels, height, width = single(layer, bottoms)
    pad = layer.settings("padding_param").integer("pad", 0)
    return Made(((batch, channels, height + 2 * pad, width + 2 * pad),))
