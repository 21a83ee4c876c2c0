"""What a labelled set of pictures is: two lists of files with numbers for classes, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

# Called with (done, all) now and then, by one thread at a time.
Progress = Callable[[int, int], None]


class Item(NamedTuple):
    """One picture: its file and the number of its class."""

    path: str
    label: int


@dataclass(frozen=True, slots=True)
class DataSet:
    """Pictures to learn from and pictures to ask about.

    `classes` are the names of the folders, and the place of a name is its label in both lists. `names` are what a
    person calls them. `indices` are the places of the classes among the thousand of ImageNet, or empty where the set
    has nothing to do with ImageNet. `version` tells sets apart whose figures cannot be compared. `notes` are sentences
    that belong beside every result.
    """

    name: str
    root: Path
    version: str
    classes: tuple[str, ...]
    train: tuple[Item, ...] = field(repr=False)
    val: tuple[Item, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()

    @property
    def chance(self) -> float:
        """Top-1 of always answering the class that is most frequent in the validation list, 0 to 1."""
        return max(self.counts(self.val)) / len(self.val)

    def counts(self, items: Iterable[Item]) -> tuple[int, ...]:
        """How many of these pictures each class has, in the order of the labels."""
        found = Counter(item.label for item in items)
        return tuple(found[label] for label in range(len(self.classes)))

    def noted(self, *notes: str) -> DataSet:
        """The same set with more to say."""
        return replace(self, notes=(*self.notes, *notes))

    def without(self, paths: Iterable[str]) -> DataSet:
        """The same set without these files; the labels stay."""
        dropped = set(paths)
        train, val = (tuple(item for item in items if item.path not in dropped) for items in (self.train, self.val))
        return replace(self, train=train, val=val)

    def as_json(self) -> dict[str, Any]:
        """What a record keeps: everything but the lists of files."""
        return {
            "name": self.name,
            "root": str(self.root),
            "version": self.version,
            "classes": list(self.classes),
            "names": list(self.names or self.classes),
            "indices": list(self.indices),
            "train": list(self.counts(self.train)),
            "val": list(self.counts(self.val)),
            "chance": self.chance,
            "notes": list(self.notes),
        }
