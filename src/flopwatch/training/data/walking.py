"""Every file below a class folder, links followed but no folder read twice, and what each is by its name alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

# The endings that torchvision's ImageFolder takes for pictures.
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

# A folder, whatever it is called: device and number.
Place = tuple[int, int]


class Sort(StrEnum):
    """What a file is by its name, or a folder by where it leads."""

    PICTURE = "picture"
    HIDDEN = "hidden"
    OTHER = "other"
    DANGLING = "dangling"
    LINKED = "linked"
    LOOP = "loop"
    AGAIN = "again"
    CLOSED = "closed"


class Entry(NamedTuple):
    """One thing that was found."""

    path: str
    sort: Sort


def class_folders(split: str) -> tuple[dict[str, str], list[Entry]]:
    """Name → path of the class folders directly below, sorted; and everything there that is none."""
    above = _above(split)
    folders: dict[str, str] = {}
    others: list[Entry] = []
    for entry in _listed(split):
        if entry.name.startswith("."):
            others.append(Entry(entry.path, Sort.HIDDEN))
        elif not _is_folder(entry):
            others.append(Entry(entry.path, _dangling(entry) or Sort.OTHER))
        elif entry.is_symlink() and _place(entry.path) in above:
            others.append(Entry(entry.path, Sort.LOOP))
        else:
            folders[entry.name] = entry.path
            if entry.is_symlink():
                others.append(Entry(entry.path, Sort.LINKED))
    return folders, others


def walk(folder: str) -> list[Entry]:
    """All that is in a class folder and below it, in torchvision's order: by folder, then by name."""
    above = _above(os.path.dirname(folder)) | _above(os.path.dirname(os.path.realpath(folder)))
    found = list(_walk(folder, above, {_place(folder)}))
    return sorted(found, key=lambda each: os.path.split(each.path))


def _walk(folder: str, above: frozenset[Place], read: set[Place]) -> Iterator[Entry]:
    try:
        listed = _listed(folder)
    except PermissionError:
        yield Entry(folder, Sort.CLOSED)
        return
    for entry in listed:
        if entry.name.startswith("."):
            yield Entry(entry.path, Sort.HIDDEN)
        elif _is_folder(entry):
            yield from _below(entry, above, read)
        else:
            named = Sort.PICTURE if entry.name.lower().endswith(EXTENSIONS) else Sort.OTHER
            yield Entry(entry.path, _dangling(entry) or named)


def _below(entry: os.DirEntry[str], above: frozenset[Place], read: set[Place]) -> Iterator[Entry]:
    place = _place(entry.path)
    if place in above:
        yield Entry(entry.path, Sort.LOOP)
    elif place in read:
        inside = os.path.realpath(os.path.dirname(entry.path)) + os.sep
        leads_up = inside.startswith(os.path.realpath(entry.path) + os.sep)
        yield Entry(entry.path, Sort.LOOP if leads_up else Sort.AGAIN)
    else:
        if entry.is_symlink():
            yield Entry(entry.path, Sort.LINKED)
        read.add(place)
        yield from _walk(entry.path, above, read)


def _listed(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is one, or leads to one; the listing tells without a look at each file."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _dangling(entry: os.DirEntry[str]) -> Sort | None:
    """A link that leads nowhere or to itself; None for everything else."""
    if not entry.is_symlink():
        return None
    try:
        os.stat(entry.path)
    except OSError as error:
        return Sort.LOOP if error.errno == errno.ELOOP else Sort.DANGLING
    return None


def _place(path: str) -> Place:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _above(folder: str) -> frozenset[Place]:
    """This folder and all that hold it: a link to one of them would lead round and round."""
    path = os.path.realpath(folder)
    places = {_place(path)}
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        places.add(_place(path))
    return frozenset(places)
