"""Imagenette: ten classes of ImageNet in two versions and three sizes; which one a folder holds is told by exact counts."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import median
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.training.data.folders import Layout
from flopwatch.training.data.sets import DataSet, Item

# ImageNet names its training pictures by class and number, and its validation pictures otherwise.
OF_IMAGENETS_TRAINING = re.compile(r"n\d{8}_\d+\.\w+")
# How many pictures are opened to learn the shorter side.
ASKED = 25


@dataclass(frozen=True, slots=True)
class Class:
    """One of the ten; counts are those of version 2."""

    wnid: str
    name: str
    index: int
    train: int
    val: int


@dataclass(frozen=True, slots=True)
class Archive:
    """One of the three sizes: where it is, and the folder it makes."""

    url: str
    folder: str


@cache
def classes() -> tuple[Class, ...]:
    """In the order of their labels."""
    return tuple(Class(wnid, **row) for wnid, row in _table()["class"].items())


@cache
def archives() -> dict[str, Archive]:
    """By size: 160, 320, full."""
    return {size: Archive(**row) for size, row in _table()["archive"].items()}


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files(__package__).joinpath("imagenette.toml").read_text(encoding="utf-8"))


def counts(version: int) -> dict[str, tuple[int, int]]:
    """Class → (train, val) of a version."""
    if version == 2:
        return {each.wnid: (each.train, each.val) for each in classes()}
    val = int(str(_table()["version"]["1"]["val"]))
    return {each.wnid: (each.train + each.val - val, val) for each in classes()}


def is_imagenette(names: tuple[str, ...]) -> bool:
    """Whether folders of these names, and no others, are classes of Imagenette."""
    return len(names) > 1 and set(names) <= {each.wnid for each in classes()}


@dataclass(frozen=True, slots=True)
class Compared:
    """A folder beside one version: which of the twenty class folders have as many pictures as they should, or fewer."""

    version: int
    complete: tuple[str, ...]
    short: tuple[str, ...]
    absent: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether all twenty agree."""
        return not (self.short or self.absent or self.other)


def compared(layout: Layout, version: int) -> Compared:
    """This folder beside a version."""
    found: dict[str, list[str]] = {"complete": [], "short": [], "absent": [], "other": []}
    for wnid, wanted in counts(version).items():
        for split, name, want in zip((layout.train, layout.val), ("train", "val"), wanted, strict=True):
            have = len(split.pictures.get(wnid, ()))
            place = f"{name}/{wnid}"
            if not have:
                found["absent"].append(place)
            elif have == want:
                found["complete"].append(place)
            else:
                found["short" if have < want else "other"].append(f"{place} ({have} of {want})")
    return Compared(version, **{key: tuple(places) for key, places in found.items()})


def recognised(layout: Layout, *, incomplete: bool = False) -> tuple[str, tuple[str, ...]]:
    """The version in words, with notes; UsageError for an archive that was extracted only in part."""
    best = max((compared(layout, version) for version in (2, 1)), key=lambda each: (each.exact, len(each.complete)))
    have = layout.train.total(), layout.val.total()
    want = [sum(column) for column in zip(*counts(best.version).values(), strict=True)]
    amounts = f"{have[0]} of {want[0]} training and {have[1]} of {want[1]} validation pictures"
    size = _size(layout)
    if best.exact:
        return f"imagenette v{best.version}{size}", ()
    if not best.complete:
        return f"imagenette subset{size}", (f"A subset of Imagenette: {amounts} of version 2 are here.",)
    if best.absent and best.short and not incomplete:
        raise UsageError(
            f"{layout.root} holds only a part of Imagenette version {best.version}: it looks like an archive that was "
            "extracted in part.",
            seen=f"There are {amounts}. Too few: {_some(best.short)}. Missing: {_some(best.absent)}.",
            todo="Remove the folder and extract the archive again, or remove the class folders that are too small.",
        )
    parts = (("missing", best.absent), ("too few", best.short), ("too many", best.other))
    what = "; ".join(f"{word}: {_some(places)}" for word, places in parts if places)
    note = f"Imagenette version {best.version} is not complete: {amounts} are here; {what}. Labels are unchanged."
    return f"imagenette v{best.version} incomplete{size}", (note,)


def _some(places: tuple[str, ...]) -> str:
    return ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")


def _size(layout: Layout) -> str:
    """The shorter side of most pictures, from a few of them, else from the name of the folder, else nothing."""
    paths = [path for each in layout.val.pictures.values() for path in each]
    sides = [side for path in paths[:: max(1, len(paths) // ASKED)] if (side := _shorter_side(path))]
    if sides:
        middle = int(median(sides))
        return f" {middle}px" if middle in (160, 320) else " full size"
    named = re.search(r"-(160|320)", layout.root.name)
    return f" {named[1]}px" if named else ""


def _shorter_side(path: str) -> int:
    try:
        from PIL import Image
    except ImportError:  # then the name of the folder must do
        return 0
    try:
        with Image.open(path) as picture:
            return min(picture.size)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return 0


def contamination(dataset: DataSet) -> str:
    """What must be said beside the accuracy of weights that were trained on ImageNet, or nothing.

    Counted from the names of the files: of version 2, 3791 of the 3925 validation pictures are from ImageNet's training set.
    """
    if not dataset.indices or not dataset.val:
        return ""
    seen = sum(_was_trained_on(item) for item in dataset.val)
    if not seen:
        return ""
    return (
        f"{seen} of {len(dataset.val)} validation pictures ({seen / len(dataset.val):.1%}) belong to ImageNet's training "
        "set: weights that were trained on ImageNet have seen them, so their accuracy here is too good."
    )


def _was_trained_on(item: Item) -> bool:
    return OF_IMAGENETS_TRAINING.fullmatch(item.path.rsplit("/", 1)[-1]) is not None
