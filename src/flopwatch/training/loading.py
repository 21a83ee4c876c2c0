"""Batches in an order that seed and epoch decide alone, from any place in it on, with any number of workers."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flopwatch.errors import CannotMeasureError

SHARED = Path("/dev/shm")
PREFETCH = 2
"""Batches that each worker has ready; PyTorch's own default."""


def sizes(images: int, batch: int) -> list[int]:
    """Images in each batch of an epoch: the last may be smaller, none is dropped."""
    full, rest = divmod(images, batch)
    return [batch] * full + ([rest] if rest else [])


class Order:
    """The batch sampler: places of `images` images; shuffled by `seed` and epoch, or in order if `seed` is None.

    `start` is the first batch that is wanted; it is for one pass, and an epoch is then complete. `pictures` are told the epoch,
    so that they throw other dice in each.
    """

    def __init__(self, images: int, batch: int, seed: int | None, pictures: Any = None) -> None:
        self._images = images
        self._pictures = pictures
        self._batch = batch
        self._seed = seed
        self.epoch = 0
        self.start = 0

    def __len__(self) -> int:
        return len(sizes(self._images, self._batch)) - self.start

    def __iter__(self) -> Iterator[list[int]]:
        if self._pictures is not None:
            self._pictures.set_epoch(self.epoch)
        order = list(range(self._images))
        if self._seed is not None:
            random.Random(mixed(self._seed, self.epoch)).shuffle(order)
        start, self.start = self.start, 0
        for first in range(start * self._batch, self._images, self._batch):
            yield order[first : first + self._batch]


class Endless:
    """A batch sampler for measuring a loader: batches from the whole data, over and over, for as long as somebody asks."""

    def __init__(self, images: int, batch: int, seed: int) -> None:
        self._images = images
        self._batch = batch
        self._seed = seed

    def __iter__(self) -> Iterator[list[int]]:
        draw = random.Random(mixed(self._seed, -1))
        while True:
            yield [draw.randrange(self._images) for _ in range(self._batch)]


def mixed(*numbers: int) -> int:
    """One number below 2**63 for several: close ones give far ones. The mixer of SplitMix64 (Steele et al., 2014)."""
    value = 0
    for number in numbers:
        value = (value + (number & (2**64 - 1)) + 0x9E3779B97F4A7C15) & (2**64 - 1)
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        value ^= value >> 31
    return value >> 1


def loader(images: Any, order: Any, *, workers: int, device: str, seed: int, persistent: bool = True) -> Any:
    """A DataLoader in such an order; it draws from no global generator."""
    import torch

    # The loader would take its workers' base seed from the global generator, and a resumed run would differ.
    own = torch.Generator()
    own.manual_seed(mixed(seed, 1))
    # More workers than cores are the user's choice, and the result tells what comes of it.
    warnings.filterwarnings("ignore", message="This DataLoader will create", module=r"torch\.utils\.data")
    return torch.utils.data.DataLoader(
        images,
        batch_sampler=order,
        num_workers=workers,
        pin_memory=device.startswith("cuda"),
        persistent_workers=persistent and workers > 0,
        prefetch_factor=PREFETCH if workers else None,
        generator=own,
    )


def check_workers(workers: int, batch: int, image_size: int, shared: Path = SHARED) -> None:
    """Raise CannotMeasureError where worker processes have no shared memory to hand their batches over in."""
    if workers == 0 or os.name != "posix":
        return
    if not shared.is_dir():
        if shared == SHARED and not Path("/proc").is_dir():
            return  # another system than Linux, which needs no such folder
        raise CannotMeasureError(
            f"Workers hand batches over in {shared}, which does not exist.", todo="Give --workers 0, or mount it."
        )
    if not os.access(shared, os.W_OK):
        raise CannotMeasureError(
            f"Workers hand batches over in {shared}, which may not be written.", todo="Give --workers 0."
        )
    # Each worker has its batches ready, one is in its hands, one with the loop: fp32, three colours.
    needed = (workers * (PREFETCH + 1) + 1) * batch * 3 * image_size**2 * 4
    free = shutil.disk_usage(shared).free
    if free < needed:
        raise CannotMeasureError(
            f"{workers} workers need {needed / 2**20:.0f} MiB of shared memory for their batches.",
            seen=f"{shared} has {free / 2**20:.0f} MiB free.",
            todo="Give fewer --workers or a smaller --batch, or run the container with a larger --shm-size.",
        )
