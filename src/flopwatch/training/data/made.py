"""A made Imagenette: drawn pictures in Imagenette's folders, counts and sizes, so that all works with no network.

Every picture is drawn from its own random numbers (seed, class, list, place in the list). A smaller share is therefore
the beginning of a larger one, and threads change nothing. The same versions of NumPy and Pillow give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from flopwatch.training.data import imagenette
from flopwatch.training.data.building import build, processors, where
from flopwatch.training.data.drawing import VERSION, draw, frame, motif_of, numbers
from flopwatch.training.data.finding import MARK
from flopwatch.training.data.sets import Progress

# The share of pictures that are grey, and the quality of the JPEGs, lowest and highest.
GREY = 0.01
QUALITY = (70, 90)


class Task(NamedTuple):
    """One picture to draw."""

    label: int
    split: int
    number: int
    path: str


def made(
    *,
    scale: float = 1.0,
    size: int = 320,
    seed: int = 0,
    cache: Path | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Path:
    """The folder of a made Imagenette of that share and shorter side, drawn now if it is not there yet."""
    target = where(cache) / f"made-imagenette-v{VERSION}-{size}px-scale{scale:g}-seed{seed}"
    return build(target, lambda folder: _draw_all(folder, scale, size, seed, progress, threads))


def amounts(scale: float) -> tuple[tuple[int, int], ...]:
    """Pictures to learn and to ask of each class: that share of Imagenette's, at least one."""
    return tuple((max(1, round(each.train * scale)), max(1, round(each.val * scale))) for each in imagenette.classes())


def _draw_all(folder: Path, scale: float, size: int, seed: int, progress: Progress | None, threads: int | None) -> None:
    tasks = list(_tasks(folder, scale))
    for task in tasks:
        os.makedirs(os.path.dirname(task.path), exist_ok=True)
    with ThreadPoolExecutor(threads or processors()) as pool:
        paint: Callable[[Task], None] = lambda task: _paint(task, size, seed)  # noqa: E731
        for done, _ in enumerate(pool.map(paint, tasks), 1):
            if progress:
                progress(done, len(tasks))
    (folder / MARK).write_text(json.dumps(_mark(scale, size, seed), indent=1), encoding="utf-8")


def _tasks(folder: Path, scale: float) -> Iterator[Task]:
    for label, (each, counts) in enumerate(zip(imagenette.classes(), amounts(scale), strict=True)):
        for split, (name, count) in enumerate(zip(("train", "val"), counts, strict=True)):
            for number in range(count):
                yield Task(label, split, number, str(folder / name / each.wnid / f"made_{number:05d}.JPEG"))


def _paint(task: Task, size: int, seed: int) -> None:
    dice = numbers(seed, task.label, task.split, task.number)
    picture = draw(task.label, frame(dice, size), dice)
    if dice.random() < GREY:
        picture = picture.convert("L")
    picture.save(task.path, "JPEG", quality=int(dice.integers(QUALITY[0], QUALITY[1], endpoint=True)))


def _mark(scale: float, size: int, seed: int) -> dict[str, object]:
    return {
        "name": "made:imagenette",
        "version": f"made v{VERSION} {size}px scale {scale:g} seed {seed}",
        "classes": [each.wnid for each in imagenette.classes()],
        "names": [motif_of(label) for label in range(len(imagenette.classes()))],
        "notes": ["Made pictures, not photographs: accuracy on them says nothing about Imagenette."],
    }
