"""Estimate: give each operator call its worth, add it to its place, and make a record of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from flopwatch.attribution import Where
from flopwatch.events import Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.formulas.work import total
from flopwatch.record import Calls, Cell, Unknown, ops_of

# Layers that are named for each unknown operator.
_LAYERS = 5


@dataclass(slots=True)
class _Place:
    works: list[Work] = field(default_factory=list)
    calls: int = 0
    read: int = 0
    written: int = 0


class Estimation:
    """Takes operator calls one by one, in `see`; the other members tell what they amount to."""

    def __init__(self) -> None:
        self._places: dict[Where, _Place] = {}
        self._unknown: dict[str, int] = {}
        self._layers: dict[str, dict[str, None]] = {}
        self._counted = self._free = self._bytes = self._unknown_bytes = 0

    def see(self, op: Op) -> None:
        """Add one call, or several that are alike; views, which move and compute nothing, may be left out or not."""
        found = estimate(op)
        scope = op.scope
        place = self._places.setdefault(Where(layer=scope.layer, op=scope.op, function=scope.function), _Place())
        read, written = op.times * op.read, op.times * op.written
        place.calls += op.times
        self._bytes += read + written
        if isinstance(found, Free):
            self._free += op.times
            if found.moves:
                place.read += read
                place.written += written
            return
        place.read += read
        place.written += written
        if isinstance(found, Work):
            self._counted += op.times
            if found.tally:
                place.works.append(found if op.times == 1 else found * op.times)
            return
        self._unknown[found.name] = self._unknown.get(found.name, 0) + op.times
        self._unknown_bytes += read + written
        layers = self._layers.setdefault(found.name, {})
        if len(layers) < _LAYERS:
            layers[scope.layer] = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """What was seen, by place."""
        return tuple(_cell(where, place) for where, place in sorted(self._places.items()))

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Operators without a formula, most calls first."""
        ordered = sorted(self._unknown.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Unknown(name, count, tuple(self._layers[name])) for name, count in ordered)

    @property
    def calls(self) -> Calls:
        """How many calls were counted, free and unknown."""
        unknown = sum(self._unknown.values())
        return Calls(self._counted, self._free, unknown, self._bytes, self._unknown_bytes)


def _cell(where: Where, place: _Place) -> Cell:
    work = total(place.works)
    return Cell(
        ops_of(work.tally),
        *where,
        calls=place.calls,
        mac=work.mac,
        padding=work.avoidable.get("padding", 0),
        causal=work.avoidable.get("causal", 0),
        read=place.read,
        written=place.written,
    )
