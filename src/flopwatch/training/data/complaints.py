"""What can be wrong with a file or folder of a data set, how bad that is, and all of it about one set."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from flopwatch.sheet import Column, Sheet, Value


class Severity(StrEnum):
    """How bad: it cannot be used; it can, but labels or figures will be wrong; it is dealt with."""

    BAD = "bad"
    WRONG = "wrong"
    ODD = "odd"


class Kind(StrEnum):
    """What is wrong, the worst first."""

    EMPTY = "empty file"
    TRUNCATED = "truncated"
    NOT_A_PICTURE = "not a picture"
    HUGE = "huge"
    DANGLING = "dangling link"
    CLOSED = "may not be read"
    MISSING = "missing class"
    EMPTY_CLASS = "empty class"
    LEAK = "in train and val"
    CONTRADICTION = "in two classes"
    LOOP = "loop"
    DUPLICATE = "duplicate"
    ENDING = "wrong ending"
    GREY = "grey"
    CMYK = "CMYK"
    ALPHA = "alpha"
    PALETTE = "palette"
    DEEP = "more than 8 bits"
    TINY = "tiny"
    LINKED = "linked folder"
    HIDDEN = "hidden"
    UNUSED = "not used"

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SEVERITY.get(self, Severity.ODD)

    @property
    def consequence(self) -> str:
        """What a run does about it."""
        return CONSEQUENCE[self]


_BAD = (Kind.EMPTY, Kind.TRUNCATED, Kind.NOT_A_PICTURE, Kind.HUGE, Kind.DANGLING, Kind.CLOSED)
_WRONG = (Kind.MISSING, Kind.EMPTY_CLASS, Kind.LEAK, Kind.CONTRADICTION, Kind.LOOP)
SEVERITY = {**dict.fromkeys(_BAD, Severity.BAD), **dict.fromkeys(_WRONG, Severity.WRONG)}
CONSEQUENCE = {
    Kind.EMPTY: "stops a run, or is left out",
    Kind.TRUNCATED: "stops a run, or is left out",
    Kind.NOT_A_PICTURE: "stops a run, or is left out",
    Kind.HUGE: "stops a run, or is left out",
    Kind.DANGLING: "is left out",
    Kind.CLOSED: "stops a run, or is left out",
    Kind.MISSING: "cannot be learnt, or not be asked about; labels stay",
    Kind.EMPTY_CLASS: "cannot be learnt, or not be asked about; labels stay",
    Kind.LEAK: "accuracy is too good",
    Kind.CONTRADICTION: "one of the labels is wrong",
    Kind.LOOP: "is not followed",
    Kind.DUPLICATE: "counts twice",
    Kind.ENDING: "is read as what it is",
    Kind.GREY: "is copied to three channels",
    Kind.CMYK: "is converted to RGB",
    Kind.ALPHA: "loses its alpha",
    Kind.PALETTE: "is converted to RGB",
    Kind.DEEP: "is cut to 8 bits",
    Kind.TINY: "is enlarged",
    Kind.LINKED: "is followed",
    Kind.HIDDEN: "is left out",
    Kind.UNUSED: "is left out",
}


def amount(faults: int) -> str:
    """So many faults, in words."""
    return "1 fault" if faults == 1 else f"{faults or 'no'} faults"


class Complaint(NamedTuple):
    """One file or folder, what is wrong with it, and more about it if there is more."""

    kind: Kind
    path: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All complaints about a set, the worst first; `pictures` is how many train/ and val/ have, `seconds` what it took."""

    root: Path
    version: str
    classes: int
    pictures: tuple[int, int]
    complaints: tuple[Complaint, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def counts(self) -> dict[Kind, int]:
        """How often each kind occurs, the worst first."""
        found = Counter(each.kind for each in self.complaints)
        return {kind: found[kind] for kind in Kind if found[kind]}

    @property
    def healthy(self) -> bool:
        """Whether nothing is bad or wrong."""
        return all(each.kind.severity is Severity.ODD for each in self.complaints)

    def of(self, kind: Kind) -> tuple[str, ...]:
        """The paths of one kind, seen from the root."""
        return tuple(self._within(each.path) for each in self.complaints if each.kind is kind)

    def told(self, complaints: Iterable[Complaint], most: int = 5) -> str:
        """Some of them in words, and how many more there are."""
        listed = [f"{self._within(each.path)} ({each.kind})" for each in complaints]
        return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")

    def sheet(self, *, every: bool = False) -> Sheet:
        """A line for each bad or wrong entry; odd ones of a kind together, with some names, unless `every` is asked for."""
        headings = ("severity", "kind", "entries", "which", "a run")
        columns = tuple(Column(name, "count" if name == "entries" else "text") for name in headings)
        rows: list[tuple[Value, ...]] = []
        for kind, count in self.counts.items():
            mine = [each for each in self.complaints if each.kind is kind]
            if every or kind.severity is not Severity.ODD:
                rows += [(str(kind.severity), str(kind), 1, self._which(each), kind.consequence) for each in mine]
            else:
                names = [self._within(each.path) for each in mine[:3]]
                more = f" and {count - len(names)} more" if count > len(names) else ""
                rows.append((str(kind.severity), str(kind), count, ", ".join(names) + more, kind.consequence))
        return Sheet(self._title(), columns, tuple(rows), self.notes)

    def as_json(self) -> dict[str, Any]:
        """Everything, every entry by name."""
        return {
            "root": str(self.root),
            "version": self.version,
            "classes": self.classes,
            "pictures": dict(zip(("train", "val"), self.pictures, strict=True)),
            "healthy": self.healthy,
            "counts": {str(kind): count for kind, count in self.counts.items()},
            "entries": [
                {
                    "severity": str(each.kind.severity),
                    "kind": str(each.kind),
                    "path": self._within(each.path),
                    "detail": self._shortened(each.detail),
                }
                for each in self.complaints
            ],
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def _title(self) -> str:
        train, val = self.pictures
        faults = sum(each.kind.severity is not Severity.ODD for each in self.complaints)
        return f"{self.root} ({self.version}): {train} + {val} pictures, {self.classes} classes, {amount(faults)}"

    def _which(self, complaint: Complaint) -> str:
        detail = self._shortened(complaint.detail)
        return f"{self._within(complaint.path)}: {detail}" if detail else self._within(complaint.path)

    def _within(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def _shortened(self, text: str) -> str:
        return text.replace(f"{self.root}{os.sep}", "")
