"""Pictures as tensors, prepared as the ImageNet example prepares them, each with its own dice so that runs repeat."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from flopwatch.training.data.pictures import BadPicture, Box, central, coloured, random_crop, shorter_side, wide_enough
from flopwatch.training.data.sets import Item

# Of ImageNet's training pictures, red, green, blue, of values 0 to 1: those of the ImageNet example.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a picture becomes a tensor of 3 x size x size; the defaults are those of the ImageNet example.

    To learn: a random part of `scale` of the area with sides in a proportion within `ratio`, resized to the square, and
    mirrored with the probability `flip`. To ask: the shorter side resized to `resize`, then the square in the middle.
    `normalise` gives 32-bit floats; without it the tensor holds the bytes, to be normalised where they are used.
    `draft` lets the JPEG decoder leave out detail that resizing would throw away: faster, but not the same numbers.
    `interpolation` is Pillow's name for how pictures are resized.
    """

    size: int
    resize: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD
    normalise: bool = True
    draft: bool = False
    interpolation: str = "bilinear"


class Images(Dataset[tuple[Tensor, int]]):
    """Items as (tensor, label), a float tensor of 3 x size x size or its bytes.

    The dice of a picture depend on the seed, the epoch and its place in the list, on nothing else: any number of workers
    or ranks in any order sees the same pictures, and a run that resumes sees them again. A file that cannot be read
    raises BadPicture, from a worker too.
    """

    def __init__(self, items: Sequence[Item], preparation: Preparation, *, training: bool, seed: int = 0) -> None:
        self.items = tuple(items)
        self.preparation = preparation
        self.training = training
        self.seed = seed
        self._epoch = torch.zeros((), dtype=torch.int64)
        with suppress(RuntimeError, OSError):  # no shared memory here, so no workers either
            self._epoch.share_memory_()  # type: ignore[no-untyped-call]  # workers that outlive an epoch hear of the next

    @property
    def epoch(self) -> int:
        """The epoch whose dice are thrown."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Throw other dice from now on, in the workers too; call it before an epoch's iterator is made."""
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        item = self.items[index]
        try:
            with Image.open(item.path) as picture:
                square = self._learnt(picture, index) if self.training else self._asked(picture)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise BadPicture.of(item.path, error) from None
        tensor = torch.from_numpy(np.array(square)).permute(2, 0, 1).contiguous()
        if self.preparation.normalise:
            tensor = normalised(tensor, self.preparation.mean, self.preparation.std)
        return tensor, item.label

    def _learnt(self, picture: Image.Image, index: int) -> Image.Image:
        how = self.preparation
        dice = random.Random(f"{self.seed}/{self.epoch}/{index}")
        box = random_crop(picture.size, how.scale, how.ratio, dice)
        mirrored = dice.random() < how.flip
        square = self._resized(picture, box, (how.size, how.size))
        return square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else square

    def _asked(self, picture: Image.Image) -> Image.Image:
        how = self.preparation
        everything = (0, 0, *picture.size)
        resized = self._resized(picture, everything, shorter_side(picture.size, how.resize))
        return resized.crop(central(resized.size, how.size))

    def _resized(self, picture: Image.Image, box: Box, size: tuple[int, int]) -> Image.Image:
        if self.preparation.draft:
            box = wide_enough(picture, box, size)
        part = coloured(picture)
        if box != (0, 0, *part.size):
            part = part.crop(box)
        return part.resize(size, Image.Resampling[self.preparation.interpolation.upper()])


def normalised(pictures: Tensor, mean: Sequence[float] = MEAN, std: Sequence[float] = STD) -> Tensor:
    """Bytes (…, 3, height, width) as 32-bit floats: to 0..1, less the mean, by the standard deviation, on their device."""
    values = pictures.to(torch.float32).div_(255)
    channels = [torch.tensor(each, dtype=torch.float32, device=values.device).view(3, 1, 1) for each in (mean, std)]
    return values.sub_(channels[0]).div_(channels[1])


def images(
    items: Sequence[Item],
    *,
    size: int = 224,
    training: bool,
    seed: int = 0,
    resize: int | None = None,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    flip: float = 0.5,
    mean: Sequence[float] = MEAN,
    std: Sequence[float] = STD,
    normalise: bool = True,
    draft: bool = False,
    interpolation: str = "bilinear",
) -> Images:
    """These pictures for a loader of PyTorch; `resize` is 256 for 224 pixels and in proportion for others if not given."""
    shorter = max(size, round(size * 256 / 224)) if resize is None else resize
    how = Preparation(size, shorter, scale, ratio, flip, tuple(mean), tuple(std), normalise, draft, interpolation)
    return Images(items, how, training=training, seed=seed)
