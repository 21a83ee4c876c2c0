"""Both sides of an explanation, made by hand: what ran at a place, and what the estimate has for it."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.explaining import Explanation, explain
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.record import Cell, Record, Shapes, Unknown, ops_of

VECTOR = 16


def lanes(*, wide: int = VECTOR, dtype: DType = DType.FP32, masked: int | None = None, **counts: int) -> Tally:
    """So many lanes of each operation, in instructions of `wide` lanes; `masked` are the lanes that a mask left switched on."""
    assert all(count % wide == 0 for count in counts.values()), "no whole number of instructions"
    return Tally.total(
        Tally.of(
            Operation(name),
            dtype,
            lanes=wide,
            instructions=count // wide,
            masked=masked is not None,
            active_lanes=masked,
        )
        for name, count in counts.items()
    )


def needs(**counts: int) -> Tally:
    """What a formula says."""
    return Tally.total(
        Tally.of(Operation(name), DType.FP32, instructions=count) for name, count in counts.items() if count
    )


def ran(tally: Tally, op: str, layer: str = "net", function: str = "forward") -> Cell:
    """A place of the measured record."""
    return Cell(ops_of(tally), layer=layer, op=op, function=function)


def asked(
    tally: Tally, op: str, *shapes: Shapes, layer: str = "net", function: str = "forward", written: int = 0
) -> Cell:
    """A place of the estimate; its multiply-accumulates are those of the shapes."""
    mac = sum(each.calls * each.mac for each in shapes)
    padding = sum(each.calls * each.padding for each in shapes)
    return Cell(
        ops_of(tally),
        layer=layer,
        op=op,
        function=function,
        calls=1,
        mac=mac,
        padding=padding,
        written=written,
        shapes=shapes,
    )


def of(
    measured: Cell | Sequence[Cell],
    estimate: Cell | Sequence[Cell] = (),
    *,
    unknown: Sequence[str] = (),
    convention: str = "pmu",
    lanes: str | None = None,
) -> Explanation:
    """Lay the two side by side."""
    ours = (measured,) if isinstance(measured, Cell) else tuple(measured)
    theirs = (estimate,) if isinstance(estimate, Cell) else tuple(estimate)
    names = tuple(Unknown(name, 1) for name in unknown)
    return explain(
        Record(counter="instrumented", subject="model", convention=convention, lanes=lanes, cells=ours),
        Record(counter="estimate", subject="model", unknown=names, cells=theirs),
    )


def causes(explanation: Explanation) -> dict[str, int]:
    """FLOP of each cause; they and what is unexplained add up to the gap."""
    found = {row.cause: row.flop for row in explanation.rows}
    assert sum(found.values()) + explanation.unexplained == explanation.gap
    return found
