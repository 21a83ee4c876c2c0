"""Reads the event tables of processors, which are data: flops/tables/pmu/README.md says what their keys mean."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

import msgspec

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops.operations import DType, Operation

Can = Literal["yes", "overcounts", "partial", "unverified", "no"]


class WhenZero(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one count is worth, provided that the event named here was counted as well and is 0."""

    event: str
    dtype: DType
    weight: int


class PmuRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One event: its raw code, and what one count of it is.

    `weight` is FLOP per count (with `per_bits`: per so many bits of a vector); `lanes` are the elements of one instruction,
    None where the event does not tell. `code` and `other_codes` are for `perf_event_attr.config`, made from `event` and
    `umask`. `counters` is how many counters the event takes.
    """

    name: str
    event: int
    source: str
    also: tuple[str, ...] = ()
    umask: int = 0
    other_umasks: tuple[int, ...] = ()
    cmask: int = 0
    operation: Operation | None = None
    dtype: DType | None = None
    lanes: int | None = None
    weight: int | None = None
    per_bits: int | None = None
    counters: int = 1
    includes: tuple[str, ...] = ()
    when_zero: tuple[WhenZero, ...] = ()
    warns: str = ""
    free: str = ""
    name_trap: str = ""
    note: str = ""
    code: int = 0
    other_codes: tuple[int, ...] = ()


class PmuSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events that together give the FLOP of a datatype; ANY is the total of everything that is not told apart."""

    dtype: DType
    events: tuple[str, ...]


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counters that one thread has: `alone` without a sibling; of each event in `single`, one at a time can be counted."""

    counters: int
    alone: int | None = None
    single: tuple[int, ...] = ()


class PmuTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """The floating-point events of one microarchitecture, or of one kind of core, with everything it extends put in."""

    name: str
    title: str
    isa: Literal["x86_64", "aarch64"]
    can: Can
    budget: Budget
    sources: tuple[str, ...]
    because: str = ""
    counts: str = ""
    overcounts: tuple[str, ...] = ()
    cannot_split: tuple[str, ...] = ()
    cannot_see: tuple[str, ...] = ()
    vector_bits: int | None = None
    notes: tuple[str, ...] = ()
    extends: str = ""
    without: tuple[str, ...] = ()
    set: tuple[PmuSet, ...] = ()
    row: tuple[PmuRow, ...] = ()

    @property
    def rows(self) -> tuple[PmuRow, ...]:
        """All events."""
        return self.row

    @property
    def sets(self) -> Mapping[DType, tuple[PmuRow, ...]]:
        """For each datatype that can be told apart (ANY: the total), the events to count and add up."""
        return {each.dtype: tuple(self.by_name[name.lower()] for name in each.events) for each in self.set}

    def apart(self) -> tuple[PmuRow, ...]:
        """The events to count so that datatypes are told apart as far as this core can; added up, they are everything."""
        split = [row for dtype, rows in self.sets.items() if dtype is not DType.ANY for row in rows]
        whole = self.sets.get(DType.ANY, ())
        return (*(() if self.leaves(whole) <= self.leaves(split) else whole), *split)

    def whole(self) -> tuple[PmuRow, ...]:
        """The fewest events that give the total; added up, they are everything, too."""
        whole = self.sets.get(DType.ANY, ())
        had = self.leaves(whole)
        others = (rows for dtype, rows in self.sets.items() if dtype is not DType.ANY)
        return (*whole, *(row for rows in others if not self.leaves(rows) <= had for row in rows))

    def leaves(self, rows: Iterable[PmuRow]) -> frozenset[str]:
        """The events that others are made of, down to those that include nothing."""
        found: frozenset[str] = frozenset()
        for row in rows:
            parts = [self.by_name[name.lower()] for name in row.includes]
            found |= self.leaves(parts) if parts else {row.name}
        return found

    @property
    def cannot(self) -> tuple[str, ...]:
        """Sentences: what it cannot split, and what it does not see."""
        return self.cannot_split + self.cannot_see

    @property
    def by_name(self) -> Mapping[str, PmuRow]:
        """Rows by their names in lower case, the other names too."""
        found: Mapping[str, PmuRow] | None = self.__dict__.get("_by_name")
        if found is None:
            found = {name.lower(): row for row in self.row for name in (row.name, *row.also)}
            self.__dict__["_by_name"] = found
        return found

    @property
    def by_code(self) -> Mapping[int, PmuRow]:
        """Rows by raw code."""
        found: Mapping[int, PmuRow] | None = self.__dict__.get("_by_code")
        if found is None:
            found = {code: row for row in self.row for code in (row.code, *row.other_codes)}
            self.__dict__["_by_code"] = found
        return found

    def find(self, name: str = "", code: int = 0) -> PmuRow | None:
        """The row of an event by its raw code, or, without one, by its name; None if the table has no such row."""
        return self.by_code.get(code) if code else self.by_name.get(name.lower())


def raw_code(isa: str, event: int, umask: int = 0, cmask: int = 0) -> int:
    """The value for `perf_event_attr.config`: on x86 the event's upper four bits stand in bits 32 to 35."""
    if isa == "aarch64":
        return event
    return event & 0xFF | umask << 8 | cmask << 24 | event >> 8 << 32


@cache
def names() -> tuple[str, ...]:
    """The microarchitectures that there is a table for."""
    files = (resources.files("flopwatch.flops") / "tables" / "pmu").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def table(name: str) -> PmuTable:
    """The table of a microarchitecture that can count FLOP at least in part.

    Raises UsageError for a name that does not exist, CannotMeasureError with the reason for one that cannot count FLOP.
    """
    found = load(name)
    if found.can == "no":
        raise CannotMeasureError(
            f"Hardware counters cannot count FLOP on {found.title}.",
            seen=found.because,
            todo="Use --counter instrumented.",
        )
    return found


@cache
def load(name: str) -> PmuTable:
    """The table of any microarchitecture, of those that cannot count FLOP too; raises UsageError if there is none."""
    if name not in names():
        raise UsageError(f"There is no table of events for {name!r}.", todo=nearest(name, names()))
    return resolve(name, lambda each: _text(each))


def resolve(name: str, read: Any) -> PmuTable:
    """A table from the texts of its file and of those it extends, as `read(name)` gives them.

    Raises ValueError if something does not fit: a circle, an unknown key, a row that a set or another row names in vain.
    """
    merged = _merged(name, read, ())
    rows = [_with_code(each, merged["isa"]) for each in merged["row"].values()]
    try:
        found = msgspec.convert(merged | {"name": name, "row": rows}, PmuTable)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from error
    known = {row.name for row in found.row}
    named = [each for one in found.set for each in one.events]
    named += [each for row in found.row for each in (*row.includes, *(one.event for one in row.when_zero))]
    for each in named:
        if each not in known:
            raise ValueError(f"{name}: there is no row named {each}")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What to do about a name that does not exist: the names most like it, or all of them."""
    choices = sorted(known)
    near = difflib.get_close_matches(name.lower(), choices, n=4, cutoff=0.5)
    near += [each for each in choices if each not in near and each.startswith(name.lower()[:5]) and len(near) < 6]
    return f"Did you mean {' or '.join(near)}?" if near else f"Choose one of: {', '.join(choices)}."


def _text(name: str) -> str:
    return (resources.files("flopwatch.flops") / "tables" / "pmu" / f"{name}.toml").read_text(encoding="utf-8")


def _merged(name: str, read: Any, above: tuple[str, ...]) -> dict[str, Any]:
    """The keys of a file over those of the one it extends; rows as a mapping by name."""
    if name in above:
        raise ValueError(f"{name} extends itself: {' → '.join((*above, name))}")
    own = tomllib.loads(read(name))
    listed = own.pop("row", [])
    rows = {each["name"]: each for each in listed}
    if len(rows) < len(listed):
        raise ValueError(f"{name}: two rows have the same name")
    base: dict[str, Any] = {"row": {}}
    if own.get("extends"):
        base = _merged(own["extends"], read, (*above, name))
    for gone in own.get("without", ()):
        if base["row"].pop(gone, None) is None:
            raise ValueError(f"{name}: there is no row {gone} to leave out")
    return base | {"extends": "", "without": ()} | own | {"row": base["row"] | rows}


def _with_code(row: dict[str, Any], isa: str) -> dict[str, Any]:
    if "code" in row or "other_codes" in row:
        raise ValueError(f"{row['name']}: the raw code is made from event and umask")
    umasks = (row.get("umask", 0), *row.get("other_umasks", ()))
    first, *others = (raw_code(isa, row["event"], umask, row.get("cmask", 0)) for umask in umasks)
    return row | {"code": first, "other_codes": tuple(others)}
