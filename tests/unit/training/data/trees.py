"""Data sets as trees of files, as small as they can be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CLASSES = ("cat", "dog", "eel")


def photograph(path: Path, mode: str = "RGB", size: tuple[int, int] = (48, 40), shade: int = 0) -> Path:
    """A picture whose bytes depend on `shade`, in the format that the ending says."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.radial_gradient("L").resize(size).point(lambda value: (value + 7 * shade) % 256)
    picture.convert(mode).save(path)
    return path


def tree(root: Path, train: Mapping[str, int], val: Mapping[str, int]) -> Path:
    """Empty files with a picture's ending, so many in each class."""
    for split, counts in (("train", train), ("val", val)):
        for name, count in counts.items():
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{name}_{number}.JPEG").touch()
    return root


def small(root: Path) -> Path:
    """Two pictures to learn and one to ask of each of three classes, all different and in order."""
    shade = 0
    for split, count in (("train", 2), ("val", 1)):
        for name in CLASSES:
            for number in range(count):
                photograph(root / split / name / f"{number}.jpg", shade=shade)
                shade += 1
    return root
