"""Every file of a data set that will make trouble, by name, before a run finds it after hours."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flopwatch.errors import UsageError
from flopwatch.training.data.building import processors
from flopwatch.training.data.complaints import Complaint, Kind, Report, Severity, amount
from flopwatch.training.data.examining import TINY, examine, what_is
from flopwatch.training.data.finding import identify
from flopwatch.training.data.folders import TRAIN, VAL, Layout, Split, read_split, settled
from flopwatch.training.data.sets import DataSet, Progress
from flopwatch.training.data.walking import Entry, Sort

POLICIES = ("skip", "fail")

# What a file is by its name, or a folder by where it leads, as a complaint.
BY_NAME = {
    Sort.HIDDEN: (Kind.HIDDEN, ""),
    Sort.DANGLING: (Kind.DANGLING, ""),
    Sort.LINKED: (Kind.LINKED, ""),
    Sort.LOOP: (Kind.LOOP, "leads back to a folder above it"),
    Sort.AGAIN: (Kind.LOOP, "leads to a folder that is read already"),
    Sort.CLOSED: (Kind.CLOSED, ""),
}


def check(
    root: Path,
    *,
    tiny: int = TINY,
    thorough: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Look at every file below train/ and val/ of `root`.

    Every picture's head is read; a picture is decoded where its end does not show that it is whole, and always with
    `thorough`. Files of equal length are compared by their content. `tiny` is the shorter side in pixels below which a
    picture is named. Raises UsageError where `root` has neither of the two folders.
    """
    started = time.perf_counter()
    layout = _layout(root)
    both = (layout.train, layout.val)
    identity = identify(layout, incomplete=True)
    found = [complaint for split in both for entry in split.others for complaint in _by_name(entry)]
    found += _by_class(layout, identity.classes)
    paths = [path for split in both for listed in split.pictures.values() for path in listed]
    with warnings.catch_warnings(), ThreadPoolExecutor(threads or processors()) as pool:
        warnings.simplefilter("ignore")  # of Pillow: what matters is said by name
        for done, complaints in enumerate(pool.map(lambda path: examine(path, tiny, thorough), paths), 1):
            found += complaints
            if progress:
                progress(done, len(paths))
        found += _twice(both, pool)
    order = {kind: place for place, kind in enumerate(Kind)}
    return Report(
        root=layout.root,
        version=identity.version,
        classes=len(identity.classes),
        pictures=(layout.train.total(), layout.val.total()),
        complaints=tuple(sorted(found, key=lambda each: (order[each.kind], each.path))),
        notes=identity.notes,
        seconds=time.perf_counter() - started,
    )


def _layout(root: Path) -> Layout:
    """As it is: a missing half is a complaint here, and no error."""
    if any((root / name).is_dir() for name in (TRAIN, VAL)):
        halves = (str(root / name) for name in (TRAIN, VAL))
        return Layout(root, *(read_split(half) if os.path.isdir(half) else Split(half, {}, ()) for half in halves))
    where = settled(root)
    return Layout(where, read_split(str(where / TRAIN)), read_split(str(where / VAL)))


def _by_name(entry: Entry) -> Iterator[Complaint]:
    if entry.sort is Sort.OTHER:
        yield Complaint(Kind.UNUSED, entry.path, what_is(entry.path))
    else:
        kind, detail = BY_NAME[entry.sort]
        yield Complaint(kind, entry.path, f"leads to {os.path.realpath(entry.path)}" if kind is Kind.LINKED else detail)


def _by_class(layout: Layout, classes: Iterable[str]) -> Iterator[Complaint]:
    for split, other in ((layout.train, VAL), (layout.val, TRAIN)):
        if not os.path.isdir(split.folder):
            yield Complaint(Kind.MISSING, split.folder, "the whole folder is missing")
            continue
        for name in classes:
            path = os.path.join(split.folder, name)
            if name not in split.pictures:
                yield Complaint(Kind.MISSING, path, f"only {other}/ has this class" if name in _names(layout) else "")
            elif not split.pictures[name]:
                yield Complaint(Kind.EMPTY_CLASS, path)


def _names(layout: Layout) -> set[str]:
    return {*layout.train.pictures, *layout.val.pictures}


def _twice(both: Iterable[Split], pool: ThreadPoolExecutor) -> list[Complaint]:
    """Pictures with the same bytes: harmless within a class, else one of them has a wrong label, or was seen before."""
    place = {path: (split.folder, name) for split in both for name, paths in split.pictures.items() for path in paths}
    alike = _groups({path: str(_length(path)) for path in place})
    suspects = [path for group in alike for path in group if _length(path) > 0]
    same = _groups(dict(zip(suspects, pool.map(_digest, suspects), strict=True)))
    complaints = []
    for first, *others in same:
        for path in others:
            kind = Kind.DUPLICATE
            if place[path][0] != place[first][0]:
                kind = Kind.LEAK
            elif place[path][1] != place[first][1]:
                kind = Kind.CONTRADICTION
            complaints.append(Complaint(kind, path, f"the same as {first}"))
    return complaints


def _groups(keys: Mapping[str, str]) -> list[list[str]]:
    """Paths with an equal key, where there are at least two."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path, key in keys.items():
        groups[key].append(path)
    return [group for key, group in groups.items() if key and len(group) > 1]


def _length(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError:
        return ""


def treated(dataset: DataSet, report: Report, policy: str) -> DataSet:
    """The set after the doctor: `skip` leaves out what cannot be read and says so, `fail` refuses what is bad or wrong."""
    if policy not in POLICIES:
        raise UsageError(f"There is no policy {policy!r} for bad pictures.", todo="Give skip or fail.")
    serious = [each for each in report.complaints if each.kind.severity is not Severity.ODD]
    if policy == "fail" and serious:
        raise UsageError(
            f"The data set {report.root} has {amount(len(serious))}.",
            seen=f"{report.told(serious)}.",
            todo=f"See all of them with flopwatch train --check-data {report.root}; mend them, or leave out what cannot "
            "be read by the policy skip.",
        )
    bad = {os.path.abspath(each.path): each for each in serious if each.kind.severity is Severity.BAD}
    dropped = [item.path for item in (*dataset.train, *dataset.val) if os.path.abspath(item.path) in bad]
    if not dropped:
        return dataset
    kept = dataset.without(dropped)
    for items, name in ((kept.train, TRAIN), (kept.val, VAL)):
        if not items:
            raise UsageError(
                f"No picture of {name}/ in {report.root} can be read.", seen=f"{report.told(bad.values())}."
            )
    told = report.told(bad[os.path.abspath(path)] for path in dropped)
    return kept.noted(f"Pictures left out, since they cannot be read ({len(dropped)}): {told}.")
