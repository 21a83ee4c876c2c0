"""The geometry and the colours of one picture: what the ImageNet example does to it, step by step."""

from __future__ import annotations

import math
import random

from PIL import Image

from flopwatch.errors import UsageError

# Left, top, right, bottom in pixels.
Box = tuple[int, int, int, int]


class BadPicture(UsageError):
    """A file that cannot be read as a picture. A loader's worker hands on only text, with a traceback: the end is kept."""

    def __init__(self, happened: str, *, seen: str = "", todo: str = "") -> None:
        super().__init__(happened.rsplit(f"{type(self).__name__}: ", 1)[-1].strip(), seen=seen, todo=todo)

    @classmethod
    def of(cls, path: str, error: Exception) -> BadPicture:
        """The sentence about one file."""
        return cls(
            f"The picture {path} cannot be read.",
            seen=f"{type(error).__name__}: {error}." if isinstance(error, FileNotFoundError) else f"{error}.",
            todo="Look at the whole folder with flopwatch train --check-data DIR, or leave bad files out by the policy skip.",
        )


def coloured(picture: Image.Image) -> Image.Image:
    """The decoded picture in red, green and blue: grey copied to all three, ink converted, alpha dropped."""
    if picture.mode == "RGB":
        picture.load()
        return picture
    if picture.mode.startswith("I"):  # Pillow would cut sixteen bits off at 255
        return picture.convert("I").point(lambda value: value * (1 / 256)).convert("L").convert("RGB")
    if "transparency" in picture.info:
        return picture.convert("RGBA").convert("RGB")
    return picture.convert("RGB")


def random_crop(
    size: tuple[int, int], scale: tuple[float, float], ratio: tuple[float, float], dice: random.Random
) -> Box:
    """A part of a picture: its share of the area uniform in `scale`, the logarithm of its proportion uniform in `ratio`.

    Ten throws that do not fit end in the largest part in the middle whose proportion is within `ratio`. Source:
    Szegedy et al. 2015, Going deeper with convolutions, section 6, in the form of torchvision's RandomResizedCrop.
    """
    width, height = size
    for _ in range(10):
        area = width * height * dice.uniform(*scale)
        proportion = math.exp(dice.uniform(math.log(ratio[0]), math.log(ratio[1])))
        wide, high = round(math.sqrt(area * proportion)), round(math.sqrt(area / proportion))
        if 0 < wide <= width and 0 < high <= height:
            left, top = dice.randint(0, width - wide), dice.randint(0, height - high)
            return left, top, left + wide, top + high
    wide, high = width, height
    if width / height < ratio[0]:
        high = round(width / ratio[0])
    elif width / height > ratio[1]:
        wide = round(height * ratio[1])
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def shorter_side(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The size at which the shorter side has `side` pixels and the shape is kept, rounded down."""
    width, height = size
    if width <= height:
        return side, int(side * height / width)
    return int(side * width / height), side


def central(size: tuple[int, int], side: int) -> Box:
    """The square of `side` pixels in the middle."""
    left, top = (round((each - side) / 2) for each in size)
    return left, top, left + side, top + side


def wide_enough(picture: Image.Image, box: Box, size: tuple[int, int]) -> Box:
    """Ask the JPEG decoder for the smallest of its scales at which `box` still has `size` pixels; the box in that scale."""
    before = picture.size
    factor = min((box[2] - box[0]) / size[0], (box[3] - box[1]) / size[1])
    if factor < 2:
        return box
    picture.draft(None, (int(before[0] / factor), int(before[1] / factor)))
    across, down = picture.size[0] / before[0], picture.size[1] / before[1]
    left, top = int(box[0] * across), int(box[1] * down)
    right, bottom = round(box[2] * across), round(box[3] * down)
    return left, top, max(right, left + 1), max(bottom, top + 1)
