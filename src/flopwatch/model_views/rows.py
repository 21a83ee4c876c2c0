"""The rows of a model's record on one axis: what each layer, operator or function needs, and what was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import FUNCTIONS, ROOT
from flopwatch.record import Cell, Record, tally_of

AXES = ("layer", "op", "function")
SORTS = ("order", "mac", "flop", "measured", "bytes", "params", "name")
NO_OP = "(between operators)"


class Sides(NamedTuple):
    """What a record holds of a model: the estimate, the measurement, or both."""

    estimate: Record | None
    measured: Record | None

    @property
    def record(self) -> Record:
        """The one that says what the model is; the measured one, if there is one."""
        found = self.measured or self.estimate
        assert found is not None
        return found


def sides(record: Record) -> Sides:
    """Tell the estimate from the measurement."""
    return Sides(record, None) if record.counter == "estimate" else Sides(record.estimate, record)


@dataclass(frozen=True, slots=True)
class Part:
    """Estimated or measured work, as figures under the record's convention; bytes and MAC are known of estimates only."""

    mac: int = 0
    flop: dict[DType, int] = field(default_factory=dict)
    op: dict[DType, int] = field(default_factory=dict)
    operations: dict[Operation, int] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    padding: int = 0
    causal: int = 0
    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """FLOP of all datatypes."""
        return sum(self.flop.values())

    @property
    def total_op(self) -> int:
        """Integer OP of all datatypes."""
        return sum(self.op.values())

    @property
    def intensity(self) -> float | None:
        """FLOP per byte that operators take and give; None without any byte."""
        moved = self.read + self.written
        return self.total / moved if moved else None


@dataclass(frozen=True, slots=True)
class Row:
    """One name on an axis; `estimate` or `measured` is None where the record has no such side."""

    name: str
    kind: str
    params: int
    estimate: Part | None
    measured: Part | None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell: no work, no parameters."""
        parts = [part for part in (self.estimate, self.measured) if part is not None]
        return not self.params and not any(part.total or part.total_op or part.mac for part in parts)

    @property
    def ratio(self) -> float | None:
        """Measured FLOP for each estimated one; None if one of them is missing or nothing was estimated."""
        if self.estimate is None or self.measured is None or not self.estimate.total:
            return None
        return self.measured.total / self.estimate.total


def rows_of(record: Record, by: str, depth: int | None = None, *, inclusive: bool = False) -> list[Row]:
    """The rows of one axis. `depth` sums layers below so many names into the one above.

    `inclusive` gives each layer the work of all layers below it, too: such rows do not sum to the total.
    """
    both = sides(record)
    names: dict[str, None] = {}
    kinds: dict[str, str] = {}
    params: dict[str, int] = {}
    layers = {layer.name for layer in both.record.layers} if by == "layer" else set()
    if by == "layer":
        for layer in both.record.layers:
            kinds[layer.name] = layer.kind
            for name in _targets(layer.name, layers, depth, inclusive):
                names[name] = None
                params[name] = params.get(name, 0) + layer.params
    groups: list[dict[str, list[Cell]]] = []
    for side in both:
        group: dict[str, list[Cell]] = {}
        for cell in side.cells if side is not None else ():
            for name in _names(cell, by, layers, depth, inclusive):
                names[name] = None
                group.setdefault(name, []).append(cell)
        groups.append(group)
    found = []
    for name in names:
        parts = [
            None if side is None else part_of(side, group.get(name, ()))
            for side, group in zip(both, groups, strict=True)
        ]
        found.append(Row(name, kinds.get(name, ""), params.get(name, 0), *parts))
    return found


def _names(cell: Cell, by: str, layers: set[str], depth: int | None, inclusive: bool) -> Sequence[str]:
    if by == "layer":
        return _targets(cell.layer, layers, depth, inclusive)
    return (getattr(cell, by) or (NO_OP if by == "op" else "(none)"),)


def _targets(layer: str, layers: set[str], depth: int | None, inclusive: bool) -> Sequence[str]:
    """The rows that a layer's work belongs to: itself or the layer that stands for it, and those above if `inclusive`."""
    if layer not in layers:
        return (layer,)
    own = shortened(layer, depth)
    if not inclusive or own == ROOT:
        return (own,)
    separator = separator_of(own)
    names = own.split(separator)
    above = [separator.join(names[:length]) for length in range(1, len(names))]
    return tuple(name for name in (ROOT, *above, own) if name in layers or name == own)


def part_of(record: Record, cells: Iterable[Cell]) -> Part:
    """The figures of some cells of a record."""
    held = tuple(cells)
    tally = Tally.total(tally_of(cell.operations) for cell in held)
    stages: dict[str, int] = {}
    for function in FUNCTIONS:
        of = [tally_of(cell.operations) for cell in held if cell.function == function]
        if of:
            stages[function] = sum(record.flop(Tally.total(of)).values())
    return Part(
        sum(cell.mac for cell in held),
        record.flop(tally),
        record.op(tally),
        tally.flop_by_operation(record.rule, record.counted_lanes),
        stages,
        sum(cell.calls for cell in held),
        sum(cell.padding for cell in held),
        sum(cell.causal for cell in held),
        sum(cell.read for cell in held),
        sum(cell.written for cell in held),
    )


def ordered(rows: list[Row], sort: str) -> list[Row]:
    """Rows in the order that one of SORTS names; figures come with the largest first."""
    none = Part()
    keys: dict[str, Callable[[Row], Any]] = {
        "order": lambda row: 0,
        "mac": lambda row: -(row.estimate or none).mac,
        "flop": lambda row: -(row.estimate or row.measured or none).total,
        "measured": lambda row: -(row.measured or none).total,
        "bytes": lambda row: -(row.estimate or none).read - (row.estimate or none).written,
        "params": lambda row: -row.params,
        "name": lambda row: row.name,
    }
    return sorted(rows, key=keys[sort])


def shortened(path: str, depth: int | None) -> str:
    """The first `depth` names of a path, which dots or slashes separate; the model itself stays."""
    if depth is None or path == ROOT:
        return path
    separator = separator_of(path)
    return separator.join(path.split(separator)[:depth]) if depth else ROOT


def separator_of(path: str) -> str:
    """What stands between the names of a path: slashes in Chainer's and ONNX's, else dots."""
    return "/" if "/" in path else "."
