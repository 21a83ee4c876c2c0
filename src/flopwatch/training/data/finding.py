"""From what somebody typed to a set of pictures."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.training.data import imagenette
from flopwatch.training.data.folders import NAMED, TRAIN, VAL, Layout, Split, read
from flopwatch.training.data.sets import DataSet, Item, Progress
from flopwatch.training.data.walking import Sort

# A file beside train/ and val/ of a set that was made here: what it is, since its folders do not say.
MARK = "flopwatch.json"
NAMES = ("imagenette", "imagenette-160", "imagenette-320", "imagenette-full", "fashion-mnist", "made:imagenette")
# How many times Imagenette a made set may be.
MOST = 100
SIZED = re.compile(r"(imagenette|made:imagenette)(?:-(160|320|full))?")


def find(
    text: str,
    *,
    scale: float = 1.0,
    cache: Path | None = None,
    size: int | None = None,
    seed: int = 0,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> DataSet:
    """The set that `text` means: a folder, `imagenette-160`, `-320` or `-full`, `made:imagenette` or `fashion-mnist`.

    A folder that exists wins over a name. `scale` takes that share of each class, at least one picture. `cache` is where
    sets are made or downloaded to (the user's cache if not given). `size` (shorter side, 160 or 320) and `seed` are of
    made sets. `incomplete` accepts an archive that was extracted only in part. `progress` hears of pictures that are
    made. Raises UsageError with what is wrong.
    """
    if not (math.isfinite(scale) and 0 < scale <= (1 if not text.startswith("made:") else MOST)):
        raise UsageError(
            f"A share of {scale} of a data set makes no sense.",
            todo=f"Give a number above 0, up to 1 (a made set: up to {MOST}).",
        )
    if not text.strip():
        raise UsageError("No data set was given.", todo=NAMED)
    path = Path(text).expanduser()
    if (path / "train-images-idx3-ubyte.gz").exists():
        from flopwatch.training.data.fashion import laid_out

        return read_folder(laid_out(source=path, scale=scale, cache=cache, progress=progress))
    if path.exists():
        return _shared(read_folder(path, incomplete=incomplete), scale)
    if named := SIZED.fullmatch(text):
        if named[1].startswith("made:"):
            from flopwatch.training.data.made import made

            return read_folder(
                made(scale=scale, size=_made_size(named[2], size), seed=seed, cache=cache, progress=progress)
            )
        from flopwatch.training.data.download import downloaded

        return _shared(read_folder(downloaded(named[2] or "full", cache)), scale)
    if text == "fashion-mnist":
        from flopwatch.training.data.fashion import laid_out

        return read_folder(laid_out(scale=scale, cache=cache, progress=progress))
    near = difflib.get_close_matches(text, NAMES, 1)
    raise UsageError(
        f"There is no data set {text!r}: no folder and no name of one.",
        todo=f"Did you mean {near[0]}?" if near else NAMED,
    )


def _made_size(named: str | None, size: int | None) -> int:
    wanted = str(size) if named is None and size is not None else named
    if wanted not in (None, "160", "320") or (named and size is not None and named != str(size)):
        raise UsageError(f"A made Imagenette of size {size or named} makes no sense.", todo="Give 160 or 320, once.")
    return int(wanted or 320)


def read_folder(root: Path, *, incomplete: bool = False) -> DataSet:
    """The set in a folder, with labels that do not depend on which class folders are missing."""
    layout = read(root)
    known = identify(layout, incomplete=incomplete)
    _refuse(layout, known.classes)
    label = {name: place for place, name in enumerate(known.classes)}
    return DataSet(
        name=known.name,
        root=layout.root,
        version=known.version,
        classes=known.classes,
        train=_items(layout.train, label),
        val=_items(layout.val, label),
        notes=(*known.notes, *_notes(layout, known.classes)),
        names=known.names,
        indices=known.indices,
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Which set a folder is: its fields mean what they mean in a DataSet."""

    name: str
    version: str
    classes: tuple[str, ...]
    names: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def identify(layout: Layout, *, incomplete: bool = False) -> Identity:
    """By the mark of a made set, by Imagenette's names and counts, else a folder whose classes are what it holds."""
    mark, name = _mark(layout.root), layout.root.resolve().name
    if mark:
        lists = {key: tuple(mark[key]) for key in ("classes", "names", "notes")}
        return Identity(str(mark.get("name", name)), str(mark["version"]), **lists)
    if imagenette.is_imagenette(layout.classes):
        version, notes = imagenette.recognised(layout, incomplete=incomplete)
        ten = imagenette.classes()
        wnids, names = tuple(each.wnid for each in ten), tuple(each.name for each in ten)
        return Identity(name, version, wnids, names, tuple(each.index for each in ten), notes)
    of_imagenet = len(layout.classes) == 1000 and all(re.fullmatch(r"n\d{8}", each) for each in layout.classes)
    # ImageNet's indices are the order of its folders.
    return Identity(name, "folder", layout.classes, indices=tuple(range(1000)) if of_imagenet else ())


def _mark(root: Path) -> dict[str, Any]:
    try:
        mark = json.loads((root / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) and {"classes", "names", "version", "notes"} <= set(mark) else {}


def _items(split: Split, label: dict[str, int]) -> tuple[Item, ...]:
    return tuple(
        Item(path, label[name]) for name, paths in sorted(split.pictures.items()) for path in paths if name in label
    )


def _refuse(layout: Layout, classes: Sequence[str]) -> None:
    """Sets from which nothing can be learnt, or nothing asked."""
    for split, name in ((layout.train, TRAIN), (layout.val, VAL)):
        if not split.total():
            raise UsageError(
                f"There is no picture in {split.folder}/.",
                seen=f"It has {len(split.pictures)} class folders." if split.pictures else "It has no class folders.",
                todo=f"Put pictures into {name}/CLASS/, or extract the archive again.",
            )
    if len(classes) < 2:
        raise UsageError(
            f"The data set {layout.root} has one class, {classes[0]}: whatever a network says would be right.",
            todo="Give at least two class folders.",
        )
    if not {name for name, paths in layout.train.pictures.items() if paths} & {
        name for name, paths in layout.val.pictures.items() if paths
    }:
        raise UsageError(
            f"train/ and val/ of {layout.root} have no class in common.",
            seen=f"train/ has {_some(layout.train.pictures)}; val/ has {_some(layout.val.pictures)}.",
            todo="Name the class folders alike in both.",
        )


def _notes(layout: Layout, classes: Sequence[str]) -> list[str]:
    notes = []
    for name, split in ((TRAIN, layout.train), (VAL, layout.val)):
        lists = {
            "Classes without a folder": [each for each in classes if each not in split.pictures],
            "Classes without a picture": split.empty,
            "Folders left out, since they are no class of this set": [
                each for each in split.pictures if each not in classes
            ],
            "Classes with one picture to learn from": [
                each for each, paths in split.pictures.items() if name == TRAIN and len(paths) == 1
            ],
        }
        notes += [f"{words}, in {name}/: {_some(found)}." for words, found in lists.items() if found]
        amounts = {words: sum(entry.sort is sort for entry in split.others) for sort, words in LEFT_OUT.items()}
        notes += [f"{words}, in {name}/: {amount}." for words, amount in amounts.items() if amount]
    return notes


LEFT_OUT = {
    Sort.HIDDEN: "Hidden files and folders left out",
    Sort.OTHER: "Files left out, since their names are not those of pictures",
    Sort.DANGLING: "Links left out, since they lead nowhere",
    Sort.LOOP: "Links not followed, since they lead back to a folder above them",
    Sort.AGAIN: "Links not followed, since they lead to a folder that was read already",
    Sort.CLOSED: "Folders left out, since they may not be read",
}


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def _shared(dataset: DataSet, scale: float) -> DataSet:
    """That share of each class, the first of it, at least one picture."""
    if scale == 1:
        return dataset
    train, val = (_first(items, scale) for items in (dataset.train, dataset.val))
    note = f"Only {scale:.4g} of each class: {len(train)} of {len(dataset.train)} training pictures, {len(val)} of {len(dataset.val)}."
    return replace(dataset, train=train, val=val).noted(note)


def _first(items: Sequence[Item], scale: float) -> tuple[Item, ...]:
    by_label: dict[int, list[Item]] = {}
    for item in items:
        by_label.setdefault(item.label, []).append(item)
    return tuple(item for each in by_label.values() for item in each[: max(1, round(len(each) * scale))])
