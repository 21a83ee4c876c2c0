"""Causes where functions are evaluated: activations, softmax.

A function value is one operation of the estimate, and a polynomial when it runs.
"""

from __future__ import annotations

from flopwatch.explaining import causes
from flopwatch.explaining.account import Account
from flopwatch.explaining.causes import Found
from flopwatch.explaining.lanes import Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.flops.operations import Operation

ADD, MUL, FMA, DIV, MINMAX = Operation.ADD, Operation.MUL, Operation.FMA, Operation.DIV, Operation.MINMAX
TRANSCENDENTAL = Operation.TRANSCENDENTAL

# FLOP of one function value at most: a hyperbolic tangent in two parts comes near, and powers are more.
MOST, _MOST_OF_POWERS = 160, 250
# Functions that are the identity, or a straight line, for some values; kernels look whether all of a vector are such.
_BRANCHES = ("elu", "selu", "celu", "softplus", "elu_backward", "softplus_backward")
_POWERS = ("pow", "lgamma", "digamma", "erfinv")
# Vectors that are worked on for each row, to put lanes together for its largest value and for its sum.
MERGES = 8
# Operations of one kind for each value, at most, where they are to tell how many values were computed.
_OF_A_KIND = 16


def explain_functions(pair: Pair) -> list[Found]:
    """The causes at a place that evaluates functions value by value, or for the rows of a softmax, without products."""
    measured, estimated = pair.lanes
    account = Account(pair, measured, estimated)
    values = estimated[TRANSCENDENTAL]
    rows = rows_of(estimated)
    gap = account.total(measured.own) + account.total(measured.foreign) - pair.flop(pair.estimated)
    if not rows:
        return _value_by_value(pair, gap, values)
    computed = computed_of(measured, values, rows)
    worth = account.total({one: whole(count, computed) for one, count in measured.own.items()})
    each = worth - whole(pair.flop(pair.estimated), values)
    if measured.foreign or not 0 <= each < _most(pair):
        return _on_average(pair, gap, values)
    found = [named(pair, each * values, f"{each + 1} FLOP for each function value")]
    if computed > values:
        shown = (
            f"rows of {values // rows} values are rounded up to whole vectors of {measured.wide} lanes, to the digit"
        )
        found.append(Found(causes.PADDED_LANES, worth * (computed - values), shown))
    rest = gap - sum(one.flop for one in found)
    if abs(rest) > rows * MERGES * max(measured.wide, 4):
        return _on_average(pair, gap, values)
    return [*found, Found(causes.LANE_SUMS, rest, "the lanes of a vector are put together for each row")]


def _value_by_value(pair: Pair, gap: int, values: int) -> list[Found]:
    each = whole(gap, values)
    if gap < 0 and any(_base(shapes.op) in _BRANCHES for shapes in pair.shapes):
        return [Found(causes.SHORTCUT, gap, "fewer operations than the formula has beside its functions")]
    if not 0 <= each < _most(pair):
        return []
    calls = sum(shapes.calls for shapes in pair.shapes)
    ends = calls * max(16, pair.lanes[0].wide) * (each + 16)
    if abs(gap - each * values) > ends:
        return _on_average(pair, gap, values)
    return [named(pair, gap, f"{each + 1} FLOP for each function value")]


def _base(op: str) -> str:
    return op.rpartition("::")[2].rstrip("_")


def _on_average(pair: Pair, gap: int, values: int) -> list[Found]:
    if not 0 <= gap < _most(pair) * values:
        return []
    return [named(pair, gap, f"{gap / values + 1:.3g} FLOP for each function value on average")]


def named(pair: Pair, flop: int, shown: str) -> Found:
    return Found(causes.POLYNOMIAL, flop, f"{_base(pair.place.op)}: {shown}")


def rows_of(estimated: Lanes) -> int:
    """Rows of a softmax: one comparison and one addition fewer than there are values; 0 if there is no softmax."""
    rows = estimated[TRANSCENDENTAL] - estimated[MINMAX]
    return rows if estimated[MINMAX] and 0 < rows < estimated[TRANSCENDENTAL] else 0


def computed_of(measured: Lanes, values: int, rows: int) -> int:
    """Values that vectors compute: rows rounded up to whole ones, or down, if that makes the account come out even."""
    for operation in (FMA, MUL):
        for computed in vectors_of(measured, values, rows):
            if (
                measured[operation]
                and measured[operation] % computed == 0
                and measured[operation] // computed <= _OF_A_KIND
            ):
                return computed
    return values


def vectors_of(measured: Lanes, values: int, rows: int) -> list[int]:
    """Values with rows rounded up to whole vectors, as they are, and rounded down."""
    length, wide = values // rows, measured.wide
    return [
        each
        for each in dict.fromkeys((rows * (-(-length // wide) * wide), values, rows * (length // wide * wide)))
        if each
    ]


def whole(count: int, by: int) -> int:
    return (2 * count + by) // (2 * by)


def _most(pair: Pair) -> int:
    return _MOST_OF_POWERS if any(name in each.op for each in pair.shapes for name in _POWERS) else MOST
