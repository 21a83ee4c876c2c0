"""What a record is made of, as it is stored; a tally becomes a tuple of `Ops` and comes back from it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from flopwatch.attribution import Where
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Count, Key, Tally


class Ops(msgspec.Struct, frozen=True):
    """Executed instructions of one kind; `active_lanes` is None without a mask or where masks were not recorded."""

    operation: str
    dtype: str
    lanes: int
    masked: bool
    count: int
    active_lanes: int | None = None


class Shapes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Calls of one operator that had the same tensors: their shapes, and the multiply-accumulates of a single call."""

    op: str
    calls: int
    inputs: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    mac: int = 0
    padding: int = 0


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """The operations of one place, on all axes; an empty axis is not known.

    Estimates know more of a place: how many operators were called there and which of them did arithmetic on what shapes, their
    multiply-accumulates and how many of these work on padding or on what a causal mask discards, and the bytes of all tensors
    that operators took and gave.
    """

    operations: tuple[Ops, ...]
    process: str = ""
    thread: str = ""
    library: str = ""
    symbol: str = ""
    instruction: str = ""
    layer: str = ""
    op: str = ""
    function: str = ""
    span: str = ""
    calls: int = 0
    mac: int = 0
    padding: int = 0
    causal: int = 0
    read: int = 0
    written: int = 0
    shapes: tuple[Shapes, ...] = ()


class Layer(msgspec.Struct, frozen=True):
    """One layer of a model: its path, its class, the parameters that it holds itself, and their bytes."""

    name: str
    kind: str = ""
    params: int = 0
    bytes: int = 0


class Memory(msgspec.Struct, frozen=True):
    """Bytes at the moment when most of a model's activations were alive, in which layer that was, and of what never leaves."""

    activations: int
    at: str = ""
    parameters: int = 0
    buffers: int = 0


class Calls(msgspec.Struct, frozen=True):
    """Calls of operators in an estimate: with a formula, free for a reason, unknown; and the bytes that the unknown handled."""

    counted: int = 0
    free: int = 0
    unknown: int = 0
    bytes: int = 0
    unknown_bytes: int = 0


class Unknown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kind of instruction or operator that nobody knows the worth of, how often it ran, and for operators in which layers."""

    name: str
    count: int
    layers: tuple[str, ...] = ()


class EventCount(msgspec.Struct, frozen=True):
    """A hardware event that was counted: its raw code in hexadecimal ("" for one of the kernel's own), and its FLOP per count."""

    name: str
    code: str
    count: int
    weight: int | None = None
    cores: str = ""


class Process(msgspec.Struct, frozen=True):
    """One program image of one process; `name` is its name on the process axis, `how` how it came to be."""

    name: str
    pid: int
    parent: int = 0
    command: tuple[str, ...] = ()
    how: str = ""
    complete: bool = True
    partial: tuple[str, ...] = ()
    threads: int = 0


class Repeat(msgspec.Struct, frozen=True):
    """One of several runs: FLOP by datatype under the record's convention, and whether it was complete."""

    flop: dict[str, int]
    complete: bool = True


def ops_of(tally: Tally) -> tuple[Ops, ...]:
    """A tally as it is stored."""
    return tuple(
        Ops(str(key.operation), str(key.dtype), key.lanes, key.masked, count.instructions, count.active_lanes)
        for key, count in tally.rows()
    )


def tally_of(operations: tuple[Ops, ...]) -> Tally:
    """A stored tally, read back; raises ValueError for operations or datatypes that do not exist."""
    return Tally(
        {
            Key(Operation(each.operation), DType(each.dtype), each.lanes, each.masked): Count(
                each.count, each.active_lanes
            )
            for each in operations
        }
    )


def cells_of(places: Mapping[Where, Tally]) -> tuple[Cell, ...]:
    """Tallies by place as they are stored."""
    return tuple(Cell(ops_of(tally), *where) for where, tally in sorted(places.items()))
