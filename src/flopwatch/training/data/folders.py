"""A folder with train/ and val/, a folder for each class in both: what it holds, before anybody gives labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flopwatch.errors import UsageError
from flopwatch.training.data.walking import EXTENSIONS, Entry, Sort, class_folders, walk

TRAIN, VAL = "train", "val"
# What other layouts call the validation folder.
LIKE_VAL = ("valid", "validation", "Val", "VAL", "test", "eval", "dev")


@dataclass(frozen=True, slots=True)
class Split:
    """One of the two: class → its pictures in torchvision's order; and everything that is not a picture."""

    folder: str
    pictures: Mapping[str, tuple[str, ...]]
    others: tuple[Entry, ...]

    @property
    def empty(self) -> tuple[str, ...]:
        """Class folders without a picture."""
        return tuple(name for name, paths in self.pictures.items() if not paths)

    def total(self) -> int:
        """How many pictures there are."""
        return sum(map(len, self.pictures.values()))


@dataclass(frozen=True, slots=True)
class Layout:
    """Both, and the classes that either of them has, sorted."""

    root: Path
    train: Split
    val: Split

    @property
    def classes(self) -> tuple[str, ...]:
        """The union: the name of a class decides its place, not which folder lacks it."""
        return tuple(sorted({*self.train.pictures, *self.val.pictures}))


def read_split(folder: str) -> Split:
    """Everything in one of the two folders."""
    try:
        folders, others = class_folders(folder)
        walked = {name: walk(path) for name, path in folders.items()}
    except PermissionError as error:
        raise UsageError(
            f"The folder {error.filename} may not be read.", todo="Allow it with chmod -R u+rX, or ask its owner."
        ) from None
    pictures = {
        name: tuple(entry.path for entry in found if entry.sort is Sort.PICTURE) for name, found in walked.items()
    }
    rest = [entry for found in walked.values() for entry in found if entry.sort is not Sort.PICTURE]
    return Split(folder, pictures, (*others, *rest))


def read(root: Path) -> Layout:
    """Both folders of a set; UsageError where one of them is missing."""
    where = settled(root)
    return Layout(where, read_split(str(where / TRAIN)), read_split(str(where / VAL)))


def settled(root: Path) -> Path:
    """The folder that holds train/ and val/: `root`, or the only one directly below it that does; else UsageError."""
    if not root.is_dir():
        raise _not_a_folder(root)
    if _is_root(root):
        return root
    below = [path for path in _folders(root) if _is_root(path)]
    if len(below) == 1:
        return below[0]
    if below:
        raise UsageError(
            f"{root} holds more than one data set.",
            seen=f"Seen: {', '.join(path.name for path in below)}.",
            todo=f"Give one of them: {below[0]}.",
        )
    raise _no_layout(root)


def _is_root(path: Path) -> bool:
    return (path / TRAIN).is_dir() and (path / VAL).is_dir()


def _folders(path: Path) -> list[Path]:
    try:
        return [each for each in sorted(path.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    except PermissionError:
        raise UsageError(f"The folder {path} may not be read.", todo="Allow it with chmod, or ask its owner.") from None


def _not_a_folder(root: Path) -> UsageError:
    if not root.exists():
        return UsageError(f"There is no data set at {root}: no such file or folder.", todo=NAMED)
    if root.name.endswith((".tgz", ".tar", ".tar.gz", ".zip")):
        return UsageError(
            f"{root} is an archive.", todo="Extract it (tar -xf) and give the folder that holds train/ and val/."
        )
    return UsageError(f"{root} is a file, not a data set.", todo="Give the folder that holds train/ and val/.")


def _no_layout(root: Path) -> UsageError:
    if root.name in (TRAIN, VAL):
        return UsageError(f"{root} is one half of a data set.", todo=f"Give the folder that holds it: {root.parent}.")
    has_train = (root / TRAIN).is_dir()
    if has_train or (root / VAL).is_dir():
        missing = VAL if has_train else TRAIN
        return UsageError(f"The data set {root} has no folder {missing}/.", seen=_seen(root), todo=_mend(root, missing))
    return UsageError(
        f"{root} is not a data set: it has neither train/ nor val/.",
        seen=_seen(root),
        todo="Give a folder with train/CLASS/*.jpg and val/CLASS/*.jpg.",
    )


def _mend(root: Path, missing: str) -> str:
    """What to do about a set without one of its folders."""
    if missing == VAL:
        for other in LIKE_VAL:
            if (root / other).is_dir():
                return f"If its {other}/ is meant for validation, rename it: mv {root / other} {root / VAL}."
    archives = [path for path in (root.with_name(root.name + end) for end in (".tgz", ".tar.gz")) if path.exists()]
    if archives or root.name.startswith("imagenet"):
        archive = archives[0] if archives else "the archive"
        return f"It may have been extracted in part: extract {archive} again, into an empty folder."
    return f"Put some pictures of each class into {root / missing}/CLASS/."


def _seen(root: Path) -> str:
    names = [path.name + "/" for path in _folders(root)]
    loose = sum(name.lower().endswith(EXTENSIONS) for name in os.listdir(root))
    if not names and not loose:
        return "The folder has no folders and no pictures."
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"Seen: {', '.join(each for each in (some, f'{loose} pictures' if loose else '') if each)}."


NAMED = (
    "Give a folder with train/ and val/, or imagenette-160, imagenette-320, imagenette-full, fashion-mnist, "
    "or made:imagenette, which needs no network."
)
