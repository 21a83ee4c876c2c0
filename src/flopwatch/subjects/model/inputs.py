"""What a model is fed: shapes, datatypes, seeded random numbers, a photograph."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError

DTYPES = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp16": "float16"}

# How torchvision's classifiers were trained to see: shorter side to 256 for a crop of 224, these means and deviations.
_RESIZED, _CROPPED = 256, 224
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_FEW = 1 << 20


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one argument; `integer` for token numbers, of which only 0 and 1 are used."""

    sizes: tuple[int, ...]
    integer: bool = False

    def with_batch(self, batch: int | None) -> Shape:
        """The same with another first dimension."""
        return self if batch is None else replace(self, sizes=(batch, *self.sizes[1:]))

    def __str__(self) -> str:
        return "x".join(map(str, self.sizes)) + (":int64" if self.integer else "")


def parse_shape(text: str) -> Shape:
    """Read "1x3x224x224" or, for token numbers, "1x128:int64"; raises UsageError."""
    match = re.fullmatch(r"((?:0|[1-9]\d*)(?:[x,](?:0|[1-9]\d*))*)(:int64)?", text.strip().lower())
    if match is None:
        raise UsageError(
            f"{text!r} is not the shape of an input.",
            todo="Write sizes like 1x3x224x224, or 1x128:int64 for token numbers.",
        )
    return Shape(tuple(int(size) for size in re.split("[x,]", match[1])), match[2] is not None)


def cast(model: Any, dtype: str) -> Any:
    """A PyTorch model in that datatype, changed in place; fp32 means: as it is."""
    import torch

    return model if dtype == "fp32" else model.to(getattr(torch, DTYPES[dtype]))


def on_meta() -> AbstractContextManager[Any]:
    """What PyTorch makes in the with block has no data."""
    import torch

    return torch.device("meta")


def make(shapes: tuple[Shape, ...], *, framework: str, dtype: str, image: Path | None, listed: bool) -> tuple[Any, ...]:
    """One argument for each shape; the image goes into the first that has three colours, as often as its batch is large."""
    if framework == "chainer":
        return tuple(_numpy_argument(shape, image) for shape in shapes)
    import torch

    made: list[Any] = []
    for shape in shapes:
        if shape.integer:
            # Models look at what few token numbers they get, and may do so even where nothing else has data.
            few = prod(shape.sizes) <= _FEW
            made.append(torch.randint(0, 2, shape.sizes, device="cpu" if few else None))
        elif image is not None and not made:
            made.append(_photograph(image, shape).to(getattr(torch, DTYPES[dtype])))
        else:
            made.append(torch.randn(shape.sizes).to(getattr(torch, DTYPES[dtype])))
    return (list(made[0].unbind()),) if listed else tuple(made)


def _numpy_argument(shape: Shape, image: Path | None) -> Any:
    import numpy

    if image is not None:
        return _photograph(image, shape).numpy()
    if shape.integer:
        return numpy.random.randint(0, 2, shape.sizes)
    return numpy.random.standard_normal(shape.sizes).astype(numpy.float32)


def locate_image(text: str) -> Path:
    """The file of a picture; "skimage:NAME" is one that scikit-image brings along, which is not imported for it."""
    room, separator, name = text.partition(":")
    if separator and room == "skimage":
        spec = find_spec("skimage")
        if spec is None or not spec.submodule_search_locations:
            raise UsageError("scikit-image is not installed.", todo="Install it: pip install scikit-image.")
        folder = Path(spec.submodule_search_locations[0]) / "data"
        pictures = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in (".png", ".jpg")}
        if name not in pictures:
            raise UsageError(f"scikit-image has no picture {name!r}.", todo=f"It has: {', '.join(pictures)}.")
        return pictures[name]
    if not Path(text).is_file():
        raise UsageError(f"There is no picture {text!r}.")
    return Path(text)


def describe(image: Path) -> str:
    """A picture in a few words."""
    return f"photograph {image.name}"


def _photograph(path: Path, shape: Shape) -> Any:
    """The picture as torchvision's classifiers expect it: shorter side resized, middle cut out, normalised."""
    if len(shape.sizes) != 4 or shape.sizes[1] != 3:
        raise UsageError(f"A photograph does not fit an input of {shape}.", todo="It needs batch x 3 x height x width.")
    try:
        import numpy
        import torch
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise UsageError(
            "Reading a picture needs PyTorch, NumPy and Pillow.", seen=f"{error}.", todo="Install: pip install pillow."
        ) from error
    batch, _, height, width = shape.sizes
    try:
        with Image.open(path) as opened:
            picture = opened.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise UsageError(f"{str(path)!r} is not a picture that can be read.", seen=f"{error}.") from error
    scale = max(height, width) * _RESIZED / _CROPPED / min(picture.size)
    size = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    pixels = numpy.asarray(picture.crop((left, top, left + width, top + height)), dtype=numpy.float32) / 255
    normalised = (pixels - numpy.array(_MEAN, numpy.float32)) / numpy.array(_DEVIATION, numpy.float32)
    return torch.from_numpy(normalised.transpose(2, 0, 1).copy()).expand(batch, -1, -1, -1).contiguous()
