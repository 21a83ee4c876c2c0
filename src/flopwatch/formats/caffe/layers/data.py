"""Layers that feed the network, and what a file tells of the sizes of their blobs."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, layer
from flopwatch.formats.caffe.network import Layer

# Layers that read images and labels from somewhere, with the name of their settings.
READERS = {
    "Data": "data_param",
    "AnnotatedData": "data_param",
    "ImageData": "image_data_param",
    "WindowData": "window_data_param",
    "HDF5Data": "hdf5_data_param",
}
FEEDERS = (*READERS, "Input", "MemoryData", "DummyData")


@layer("Parameter")
def parameter(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A learned blob of its own."""
    shape = layer.settings("parameter_param").message("shape").integers("dim", least=1)
    return Made((shape,), {"parameter": shape})


@layer("HDF5Output")
def output(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Writes to a file."""
    return Made(())


def told(layer: Layer) -> tuple[list[Shape | None], tuple[str, ...]]:
    """The shapes of a feeding layer's tops as far as the file tells them, None where it does not; and what had to be assumed."""
    count = len(layer.tops)
    if layer.type == "Input" or "input_param" in layer.message:
        shapes = [shape.integers("dim", least=1) or None for shape in layer.settings("input_param").messages("shape")]
        return _for_each(layer, shapes), ()
    if layer.type == "DummyData":
        settings = layer.settings("dummy_data_param")
        shapes = [shape.integers("dim", least=1) for shape in settings.messages("shape")]
        if not shapes:
            columns = [settings.integers(name, least=1) for name in ("num", "channels", "height", "width")]
            longest = max(map(len, columns))
            # A size that is written once holds for all tops.
            padded = [column * longest if len(column) == 1 else column for column in columns]
            shapes = [tuple(sizes) for sizes in zip(*padded, strict=False)]
        return _for_each(layer, shapes), ()
    if layer.type == "MemoryData":
        settings = layer.settings("memory_data_param")
        sizes = tuple(settings.integer(name, least=1) for name in ("batch_size", "channels", "height", "width"))
        return [sizes, *[(sizes[0],)] * (count - 1)], ()
    return _read(layer)


def _for_each(layer: Layer, shapes: Sequence[Shape | None]) -> list[Shape | None]:
    count = len(layer.tops)
    if len(shapes) not in (0, 1, count):
        layer.place.refuse(f"{layer.named} has {len(shapes)} shapes for {count} tops")
    return list(shapes) if len(shapes) == count else list(shapes or [None]) * count


def _read(layer: Layer) -> tuple[list[Shape | None], tuple[str, ...]]:
    settings, transform = layer.settings(READERS[layer.type]), layer.settings("transform_param")
    rows = settings.integer("batch_size", 0)
    crop = transform.integer("crop_size", settings.integer("crop_size", 0))
    high, wide = transform.integer("crop_h", crop), transform.integer("crop_w", crop)
    if not high and "new_height" in settings:
        high, wide = settings.integer("new_height"), settings.integer("new_width", 0)
    resized = transform.message("resize_param")
    if not high and "height" in resized:
        high, wide = resized.integer("height"), resized.integer("width")
    notes: list[str] = []
    if "batch_size" not in settings:
        rows = 1
        notes.append(f"{layer.name}: the file gives no batch; 1 is taken")
    elif not rows:
        settings.all("batch_size")[0].place.refuse(f"{layer.named} has a batch of 0", todo="Give a number from 1 on.")
    channels = 3
    if transform.flag("force_gray", False) or not settings.flag("is_color", True):
        channels = 1
    elif high and len(transform.numbers("mean_value")) != 3:
        notes.append(f"{layer.name}: the file gives no number of channels; 3 are taken")
    image = (rows, channels, high, wide) if high and wide and layer.type != "HDF5Data" else None
    if image is None and "batch_size" in settings:
        notes.clear()
    return [image, *[(rows,)] * (len(layer.tops) - 1)], tuple(notes)
