"""What an explanation is made of: the causes that can be named, the rows that they come in, and how much stays unexplained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

PADDING = "skipped padding"
PARTIAL_SUMS = "partial sums"
INITIAL_BIAS = "bias as initial value"
FIRST = "first products of sums"
PADDED_LANES = "padded lanes"
MASKED_LANES = "masked lanes"
SCALING = "scaling by alpha and beta"
ALGORITHM = "another algorithm for the products"
RECOMPUTED = "computed again"
POLYNOMIAL = "polynomials of functions"
ALPHA = "sums with a factor"
SHORTCUT = "branches not taken"
COMPARED = "maxima by comparison"
LANE_SUMS = "accumulators in lanes"
FORMULATION = "another formulation"
CONVERSION = "quantization"
OVERHEAD = "division of work and addresses"
BETWEEN = "between operators"
FREE = "arithmetic of free operators"
NO_FORMULA = "operator without formula"

CAUSES = {
    PADDING: "products with the zeros around an image are left out",
    PARTIAL_SUMS: "a sum is made in pieces, and the pieces are added up",
    INITIAL_BIAS: "sums begin with the bias, which costs no addition then",
    FIRST: "the first product of a sum is added to nothing",
    PADDED_LANES: "a size is rounded up to whole vectors or blocks, and what fills them is computed, too",
    MASKED_LANES: "lanes that a mask switched off, which count as if they computed",
    SCALING: "matrix products multiply what goes in or comes out by their factors, though these are 1",
    ALGORITHM: "fewer products than the definition has, and additions that transform: Winograd",
    RECOMPUTED: "a kernel keeps no intermediate results, and computes them once more for the gradients",
    POLYNOMIAL: "a function value, one operation in the estimate, is a polynomial in instructions",
    ALPHA: "a + alpha * b is a multiply-add also where alpha is 1",
    SHORTCUT: "the estimate has what is needed at most; these values need less",
    COMPARED: "maxima are found by comparing and selecting, which is no arithmetic",
    LANE_SUMS: "sums are kept apart by lane and accumulator, which start at zero and are added up at the end",
    FORMULATION: "the same values by other steps than those of the formula",
    CONVERSION: "numbers become integers before integer products, and their results numbers again",
    OVERHEAD: "scalar arithmetic that shares out the work or finds addresses",
    BETWEEN: "the framework's own arithmetic, while no operator runs",
    FREE: "operators that only move data compute nevertheless: random numbers, indices, scales",
    NO_FORMULA: "the estimate does not know the operator, and has nothing for it",
}
"""Each cause and what it means."""


class Place(NamedTuple):
    """Where two tallies were laid side by side; `op` names several operators if they had to be taken together."""

    layer: str
    op: str
    function: str


@dataclass(frozen=True, slots=True)
class Found:
    """A cause at one place: signed FLOP (positive for measured ones that the estimate lacks), and what shows it, as a sentence."""

    cause: str
    flop: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Part:
    """One place: its FLOP on both sides, and the causes found for the difference."""

    place: Place
    measured: int
    estimated: int
    found: tuple[Found, ...] = ()

    @property
    def gap(self) -> int:
        """Measured less estimated FLOP."""
        return self.measured - self.estimated

    @property
    def unexplained(self) -> int:
        """What no cause accounts for, signed."""
        return self.gap - sum(each.flop for each in self.found)


@dataclass(frozen=True, slots=True)
class Row:
    """A cause of the whole model: its FLOP, where it was found, and what shows it."""

    cause: str
    flop: int
    places: tuple[Place, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a measured record and an estimate differ, place by place."""

    parts: tuple[Part, ...]

    @cached_property
    def measured(self) -> int:
        """FLOP of the measured record."""
        return sum(part.measured for part in self.parts)

    @cached_property
    def estimated(self) -> int:
        """FLOP of the estimate."""
        return sum(part.estimated for part in self.parts)

    @property
    def gap(self) -> int:
        """Measured less estimated FLOP."""
        return self.measured - self.estimated

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The causes, largest first; with `unexplained` they add up to the gap."""
        return _rows(self.parts)

    @cached_property
    def unexplained(self) -> int:
        """The signed sum of what no cause accounts for."""
        return sum(part.unexplained for part in self.parts)

    @cached_property
    def missing(self) -> int:
        """The sum of the sizes of what no cause accounts for, place by place: two of opposite sign do not cancel."""
        return sum(abs(part.unexplained) for part in self.parts)

    @property
    def share(self) -> float:
        """The share of the gap that is explained, from 0 to 1.

        One less `missing` as a share of the gap of the whole model. Causes of opposite sign make the gap smaller and so this share too, and
        unexplained amounts are added without their signs: the figure can be worse than it is, never better.
        """
        if not self.missing:
            return 1.0
        return max(0.0, 1 - self.missing / abs(self.gap)) if self.gap else 0.0


def _rows(parts: Iterable[Part]) -> tuple[Row, ...]:
    flop: dict[str, int] = {}
    places: dict[str, dict[Place, None]] = {}
    evidence: dict[str, dict[str, int]] = {}
    for part in parts:
        for each in part.found:
            flop[each.cause] = flop.get(each.cause, 0) + each.flop
            places.setdefault(each.cause, {})[part.place] = None
            sizes = evidence.setdefault(each.cause, {})
            sizes[each.evidence] = sizes.get(each.evidence, 0) + abs(each.flop)
    rows = [
        Row(cause, flop[cause], tuple(places[cause]), tuple(sorted(shown, key=lambda each: (-shown[each], each))))
        for cause, shown in evidence.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.flop), row.cause)))
