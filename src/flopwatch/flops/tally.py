"""The tally: how many operations of which kind, unweighted; a convention weighs them as late as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from flopwatch.flops.convention import PMU, Convention, Lanes
from flopwatch.flops.operations import DType, Operation

G = TypeVar("G")
NOT_SPLIT = "scalar or not told apart"


class Key(NamedTuple):
    """What is counted apart: `lanes` is per instruction, with `Operation` saying what one lane is."""

    operation: Operation
    dtype: DType
    lanes: int = 1
    masked: bool = False

    @property
    def width(self) -> str:
        """The width in bits of the register part that is worked on ("128"), or "scalar", or "tile".

        `NOT_SPLIT` where hardware that counts scalar work and FLOP alike cannot tell.
        """
        if self.operation is Operation.TILE_DOT:
            return "tile"
        if self.dtype is DType.ANY or (self.operation is Operation.ANY and self.lanes == 1):
            return NOT_SPLIT
        if self.lanes == 1:
            return "scalar"
        return str(self.lanes * self.operation.parts * self.dtype.bits)


class Count(NamedTuple):
    """Executed instructions, and the sum of the lanes that their masks left switched on.

    `active_lanes` is None for keys that are not masked (all lanes are on), and where a mask was not recorded.
    """

    instructions: int
    active_lanes: int | None = None


class Tally(Mapping[Key, Count]):
    """An immutable count of operations: tallies add, and a whole number of runs scales them.

    Where the mask of even one instruction under a key was not recorded, the sum has no active lanes for that key and
    counts it in full; `masks_recorded` tells.
    """

    __slots__ = ("_counts",)
    _counts: dict[Key, Count]

    def __init__(self, counts: Mapping[Key, Count] | None = None) -> None:
        checked: dict[Key, Count] = {}
        for key, count in (counts or {}).items():
            _check(key, count)
            if count.instructions:
                checked[key] = count
        self._counts = checked

    @classmethod
    def of(
        cls,
        operation: Operation,
        dtype: DType,
        *,
        lanes: int = 1,
        instructions: int = 1,
        masked: bool = False,
        active_lanes: int | None = None,
    ) -> Tally:
        """A tally of one key."""
        return cls({Key(operation, dtype, lanes, masked): Count(instructions, active_lanes)})

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """The sum of many tallies, without the copies that adding them one by one would make."""
        counts: dict[Key, Count] = {}
        for tally in tallies:
            for key, count in tally._counts.items():
                present = counts.get(key)
                counts[key] = count if present is None else _add(present, count)
        return cls._trusted(counts)

    @classmethod
    def _trusted(cls, counts: dict[Key, Count]) -> Tally:
        tally = cls.__new__(cls)
        tally._counts = counts
        return tally

    def __getitem__(self, key: Key) -> Count:
        return self._counts[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return f"Tally({self._counts!r})"

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally.total((self, other))

    def __radd__(self, other: object) -> Tally:
        # So that the built-in sum(), which begins with 0, works.
        return self if other == 0 else NotImplemented

    def __mul__(self, runs: int) -> Tally:
        """This work done `runs` times; active lanes scale too, as if each run had the same mask."""
        if not isinstance(runs, int):
            return NotImplemented
        if runs < 0:
            raise ValueError(f"a tally cannot be taken {runs} times")
        if runs == 0:
            return Tally()
        return Tally._trusted(
            {
                key: Count(count.instructions * runs, None if count.active_lanes is None else count.active_lanes * runs)
                for key, count in self._counts.items()
            }
        )

    __rmul__ = __mul__

    def rows(self) -> list[tuple[Key, Count]]:
        """All keys with their counts, in an order that does not depend on how the tally came about."""
        return sorted(self._counts.items())

    @property
    def masks_recorded(self) -> bool:
        """Whether the active lanes of all masked instructions are known."""
        return all(count.active_lanes is not None for key, count in self._counts.items() if key.masked)

    def flop(self, convention: Convention = PMU, lanes: Lanes | None = None) -> dict[DType, int]:
        """FLOP by datatype, without zero rows; integer work is left out.

        `lanes` overrules what the convention says of switched-off lanes. Where masks were not recorded, lanes count in full.
        """
        return _grouped(self._worths(convention, lanes, floating=True), lambda key: key.dtype)

    def op(self, convention: Convention = PMU, lanes: Lanes | None = None) -> dict[DType, int]:
        """Integer OP by datatype, without zero rows: multiply-adds and dot products, of which none is FLOP."""
        return _grouped(self._worths(convention, lanes, floating=False), lambda key: key.dtype)

    def flop_by_operation(self, convention: Convention = PMU, lanes: Lanes | None = None) -> dict[Operation, int]:
        """FLOP by operation over all floating datatypes, without zero rows."""
        return _grouped(self._worths(convention, lanes, floating=True), lambda key: key.operation)

    def flop_by_width(self, convention: Convention = PMU, lanes: Lanes | None = None) -> dict[str, int]:
        """FLOP by vector width in bits: "scalar", "64", "128", "256", "512", "tile", `NOT_SPLIT`; without zero rows."""
        return _grouped(self._worths(convention, lanes, floating=True), lambda key: key.width)

    def fma_share(self, convention: Convention = PMU) -> float | None:
        """The share of FLOP that fused operations do, from 0 to 1; None without any FLOP, or if hardware did not tell."""
        by_operation = self.flop_by_operation(convention)
        if Operation.ANY in by_operation:
            return None
        total = sum(by_operation.values())
        return sum(flop for operation, flop in by_operation.items() if operation.fused) / total if total else None

    def width_shares(self, convention: Convention = PMU) -> dict[str, float]:
        """The share of FLOP done at each vector width, from 0 to 1; empty if there is no FLOP at all."""
        by_width = self.flop_by_width(convention)
        total = sum(by_width.values())
        return {width: flop / total for width, flop in by_width.items()}

    def wasted_flop(self, convention: Convention = PMU) -> int:
        """FLOP that full lanes show and active lanes do not: computed in lanes that a mask switched off."""
        full = sum(self.flop(convention, "full").values())
        return full - sum(self.flop(convention, "active").values())

    def wasted_lanes(self) -> int:
        """Lanes that masks switched off, over all instructions whose masks were recorded, integer ones too."""
        return sum(
            key.lanes * count.instructions - count.active_lanes
            for key, count in self._counts.items()
            if count.active_lanes is not None
        )

    def _worths(self, convention: Convention, lanes: Lanes | None, *, floating: bool) -> Iterator[tuple[Key, int]]:
        active_only = (lanes or convention.lanes) == "active"
        for key, count in self._counts.items():
            if key.dtype.floating is not floating:
                continue
            counted = key.lanes * count.instructions
            if active_only and count.active_lanes is not None:
                counted = count.active_lanes
            yield key, convention.worth(key.operation, key.dtype, count.instructions, key.lanes, counted)


def _grouped(worths: Iterable[tuple[Key, int]], group: Callable[[Key], G]) -> dict[G, int]:
    totals: dict[G, int] = {}
    for key, worth in worths:
        if worth:
            totals[group(key)] = totals.get(group(key), 0) + worth
    return totals


def _add(one: Count, other: Count) -> Count:
    if one.active_lanes is None or other.active_lanes is None:
        return Count(one.instructions + other.instructions)
    return Count(one.instructions + other.instructions, one.active_lanes + other.active_lanes)


def _check(key: Key, count: Count) -> None:
    if key.lanes < 1 or count.instructions < 0:
        raise ValueError(f"not a count of operations: {key} {count}")
    if key.dtype is DType.ANY and key.operation is not Operation.ANY:
        raise ValueError(f"an operation whose datatype is not known: {key}")
    if count.active_lanes is None:
        return
    if not key.masked:
        raise ValueError(f"active lanes without a mask: {key} {count}")
    if not 0 <= count.active_lanes <= key.lanes * count.instructions:
        raise ValueError(f"more active lanes than lanes: {key} {count}")
