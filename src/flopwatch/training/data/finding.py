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
from flopwatch.training.data.folders import TRAIN, VAL, Layout, Split, read
from flopwatch.training.data.sets import DataSet, Item, Progress
from flopwatch.training.data.walking import Sort

# A file beside train/ and val/ of a set that was made here: what it is, since its folders do not say.
MARK = "flopwatch.json"
NAMES = ("imagenette", "imagenette-160", "imagenette-320", "imagenette-full", "fashion-mnist", "made:imagenette")
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
    if not (math.isfinite(scale) and 0 < scale <= 1):
        raise UsageError(f"A share of {scale} of a data set makes no sense.", todo="Give a number above 0, up to 1.")
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
    names = ", ".join(NAMES)
    raise UsageError(
        f"There is no data set {text!r}: no folder and no name of one.",
        todo=f"Did you mean {near[0]}?" if near else f"Give a folder with train/ and val/, or one of {names}.",
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
    train, val = layout.train, layout.val
    for name, split in ((TRAIN, train), (VAL, val)):
        if missing := [each for each in classes if each not in split.pictures]:
            notes.append(f"{name}/ has no folder for {len(missing)} of {len(classes)} classes: {_some(missing)}.")
        if split.empty:
            notes.append(f"{name}/ has no picture for {len(split.empty)} classes: {_some(split.empty)}.")
        if stray := [each for each in split.pictures if each not in classes]:
            notes.append(f"{name}/ has folders that are no class of this set and are left out: {_some(stray)}.")
        for sort, words in LEFT_OUT.items():
            if found := sum(entry.sort is sort for entry in split.others):
                notes.append(f"{name}/: {found} {words}.")
    if single := [name for name, paths in train.pictures.items() if len(paths) == 1]:
        notes.append(f"{len(single)} classes have one training picture only: {_some(single)}.")
    return notes


LEFT_OUT = {
    Sort.HIDDEN: "hidden files or folders are left out",
    Sort.OTHER: "files that are no pictures by their names are left out",
    Sort.DANGLING: "links lead nowhere and are left out",
    Sort.LOOP: "links lead back to a folder above them and are not followed",
    Sort.AGAIN: "links lead to a folder that was read already and are not followed",
    Sort.CLOSED: "folders may not be read and are left out",
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
