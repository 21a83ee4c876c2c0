"""The lanes of a tally, by operation: what a kernel did, regardless of how many lanes its instructions have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally

NONE: Mapping[Operation, int] = MappingProxyType({})
DOTS = (Operation.DOT, Operation.TILE_DOT)
FUSED = (Operation.FMA, *DOTS)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Switched-on lanes by operation.

    `foreign` are those of double precision, and of x87, in a place whose estimate has none: work of the kernel for itself.
    `wide` is the number of lanes of the widest instructions but dot products, 1 for scalar code; `by_width` has the lanes of each
    width apart.
    """

    own: Mapping[Operation, int] = field(default_factory=lambda: NONE)
    foreign: Mapping[Operation, int] = field(default_factory=lambda: NONE)
    wide: int = 1
    by_width: Mapping[int, Mapping[Operation, int]] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, operation: Operation) -> int:
        return self.own.get(operation, 0)

    @property
    def together(self) -> Lanes:
        """The same with double precision among its own: sums that are kept in it, for instance."""
        both = {one: self[one] + self.foreign.get(one, 0) for one in (*self.own, *self.foreign)}
        return Lanes(both, NONE, self.wide, self.by_width)

    @property
    def widest(self) -> Mapping[Operation, int]:
        """The lanes of the widest instructions."""
        return self.by_width.get(self.wide, NONE)

    @property
    def products(self) -> int:
        """Multiplications, those of fused operations too."""
        return self.fused + self[Operation.MUL]

    @property
    def sums(self) -> int:
        """Additions, those of fused operations too."""
        return self.fused + self[Operation.ADD]

    @property
    def fused(self) -> int:
        """Products that are added to something in the same instruction."""
        return sum(self[operation] for operation in FUSED)


def lanes_of(tally: Tally, *, double: bool = False) -> Lanes:
    """The floating-point lanes of a tally; `double` says that double precision is what is asked for here."""
    own: dict[Operation, int] = {}
    foreign: dict[Operation, int] = {}
    by_width: dict[int, dict[Operation, int]] = {}
    for key, count in tally.items():
        if not key.dtype.floating:
            continue
        lanes = key.lanes * count.instructions if count.active_lanes is None else count.active_lanes
        mine = double or key.dtype not in (DType.FP64, DType.X87)
        into = own if mine else foreign
        into[key.operation] = into.get(key.operation, 0) + lanes
        if mine and key.operation not in DOTS:
            of_width = by_width.setdefault(key.lanes, {})
            of_width[key.operation] = of_width.get(key.operation, 0) + lanes
    wide = max(by_width, default=1)
    return Lanes(own, foreign, wide, by_width)


def has_double(tally: Tally) -> bool:
    """Whether a tally holds work in double precision."""
    return any(key.dtype is DType.FP64 for key in tally)
