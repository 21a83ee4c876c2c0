"""What is left to explain at a place, and how much an operator handles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from flopwatch.explaining.causes import Found
from flopwatch.explaining.lanes import Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.flops.operations import Operation
from flopwatch.record import Shapes


@dataclass(slots=True)
class Account:
    """What is left to explain at a place: lanes by operation, positive where measured, with what they are worth."""

    pair: Pair
    measured: Lanes
    estimated: Lanes
    left: dict[Operation, int] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)

    def __post_init__(self) -> None:
        for operation in {*self.measured.own, *self.estimated.own}:
            self.left[operation] = self.measured[operation] - self.estimated[operation]

    def worth(self, operation: Operation) -> int:
        """FLOP of one lane."""
        return self.pair.record.rule.weights[operation]

    def total(self, lanes: Mapping[Operation, int]) -> int:
        """FLOP of lanes."""
        return sum(self.worth(operation) * count for operation, count in lanes.items())

    def accounted(self, operation: Operation) -> int:
        """Lanes of an operation that the estimate has, or that were taken for what it has."""
        return self.measured[operation] - self.left.get(operation, 0)

    def explain(self, cause: str, taken: Mapping[Operation, int], evidence: str) -> None:
        """Give a cause these lanes."""
        for operation, count in taken.items():
            self.left[operation] = self.left.get(operation, 0) - count
        if flop := self.total(taken):
            self.found.append(Found(cause, flop, evidence))


@dataclass(frozen=True, slots=True)
class Extent:
    """How much an operator handles: values that go in, results, and calls, of all its shapes together."""

    values: int
    results: int
    calls: int
    largest: int

    @classmethod
    def of(cls, shapes: tuple[Shapes, ...]) -> Extent:
        """The sums over some shapes; the values are those of the largest tensor that goes in; `largest` is one tensor's size."""
        values = sum(each.calls * max((prod(shape) for shape in each.inputs), default=0) for each in shapes)
        results = sum(each.calls * prod(each.outputs[0]) for each in shapes if each.outputs)
        largest = max((prod(out) for each in shapes for out in (*each.inputs, *each.outputs)), default=0)
        return cls(values, results, sum(each.calls for each in shapes), largest)
