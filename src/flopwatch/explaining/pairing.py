"""Lay a measured record and an estimate side by side: the same layer, operator and function; what has no counterpart is taken together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flopwatch.explaining.causes import Place
from flopwatch.explaining.lanes import Lanes, has_double, lanes_of
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import ROOT
from flopwatch.record import Cell, Record, Shapes, tally_of


@dataclass(slots=True)
class Pair:
    """What was measured and what was estimated at one place, each with its weight in FLOP under the measured record's rule."""

    place: Place
    record: Record
    measured: Tally = field(default_factory=Tally)
    cells: list[Cell] = field(default_factory=list)
    together: bool = False

    @property
    def estimated(self) -> Tally:
        """The estimate's operations."""
        return Tally.total(tally_of(cell.operations) for cell in self.cells)

    @property
    def shapes(self) -> tuple[Shapes, ...]:
        """The operators of the estimate that compute, with their shapes."""
        return tuple(each for cell in self.cells for each in cell.shapes)

    @property
    def mac(self) -> int:
        """Multiply-accumulates of the estimate."""
        return sum(cell.mac for cell in self.cells)

    @property
    def written(self) -> int:
        """Bytes of all tensors that the estimate's operators make."""
        return sum(cell.written for cell in self.cells)

    @property
    def lanes(self) -> tuple[Lanes, Lanes]:
        """Lanes by operation, measured and estimated."""
        estimated = self.estimated
        double = has_double(estimated)
        return lanes_of(self.measured, double=double), lanes_of(estimated, double=double)

    def flop(self, tally: Tally) -> int:
        """FLOP of a tally."""
        return sum(self.record.flop(tally).values())


def pairs(measured: Record, estimate: Record) -> list[Pair]:
    """All places of both records, each cell in exactly one."""
    found: dict[Place, Pair] = {}
    for where, tally in measured.by_place.items():
        place = Place(where.layer, where.op, where.function)
        pair = found.setdefault(place, Pair(place, measured))
        pair.measured = pair.measured + tally
    for cell in estimate.cells:
        place = Place(cell.layer, cell.op, cell.function)
        found.setdefault(place, Pair(place, measured)).cells.append(cell)
    every = list(found.values())
    lonely = [pair for pair in every if _lonely(pair)]
    merged = list(_merged(lonely))
    return [pair for pair in every if not _lonely(pair)] + merged


def _lonely(pair: Pair) -> bool:
    """Whether arithmetic stands on one side, with nothing at all on the other."""
    if not pair.place.op:
        return False
    if not pair.cells:
        return bool(pair.measured)
    return not pair.measured and bool(pair.estimated)


def _merged(lonely: list[Pair]) -> Iterator[Pair]:
    """A measured operator takes up the estimated ones of its own layer, or of the layers below, which have no counterpart."""
    measured = [pair for pair in lonely if not pair.cells]
    rest = [pair for pair in lonely if pair.cells]
    by_layer: dict[tuple[str, str], list[Pair]] = {}
    for pair in measured:
        by_layer.setdefault((pair.place.layer, pair.place.function), []).append(pair)
    # From the innermost layers outwards, so that an outer one takes only what is left.
    for (layer, function), group in sorted(by_layer.items(), key=lambda item: -item[0][0].count(".")):
        taken = [pair for pair in rest if pair.place.function == function and pair.place.layer == layer]
        below = [pair for pair in rest if pair.place.function == function and _within(pair.place.layer, layer)]
        if 2 * sum(pair.flop(pair.estimated) for pair in taken) < sum(pair.flop(pair.measured) for pair in group):
            taken = below  # one operator does what its layers would have done
        if not taken:
            yield from group
            continue
        rest = [pair for pair in rest if pair not in taken]
        ops = dict.fromkeys(pair.place.op for pair in group)
        yield Pair(
            Place(layer, " + ".join(ops), function),
            group[0].record,
            Tally.total(pair.measured for pair in group),
            [cell for pair in taken for cell in pair.cells],
            together=True,
        )
    yield from rest


def _within(layer: str, outer: str) -> bool:
    return outer == ROOT or layer == outer or layer.startswith(outer + ".")
