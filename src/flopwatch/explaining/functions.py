"""Causes where functions are evaluated: activations, softmax, attention.

A function value is one operation of the estimate, and a polynomial when it runs.
"""

from __future__ import annotations

from flopwatch.explaining import causes
from flopwatch.explaining.account import Account
from flopwatch.explaining.causes import Found
from flopwatch.explaining.lanes import FUSED, Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.explaining.sizes import Product, products_of, sized
from flopwatch.flops.operations import Operation

ADD, MUL, FMA, DIV, MINMAX = Operation.ADD, Operation.MUL, Operation.FMA, Operation.DIV, Operation.MINMAX
TRANSCENDENTAL = Operation.TRANSCENDENTAL

# FLOP of one function value at most: a hyperbolic tangent in two parts comes near, and powers are more.
_MOST, _MOST_OF_POWERS = 160, 250
# FLOP of an exponential or hyperbolic tangent beside products, at least and at most.
_LEAST, _MOST_BESIDE = 4, 60
_POWERS = ("pow", "lgamma", "digamma", "erfinv")
# Vectors that are worked on for each row, to put lanes together for its largest value and for its sum, ...
_MERGES = 8
# ... and, where rows come in blocks, to scale what was summed up before.
_BLOCKS = 4
# Multiply-adds of an exponential, at most, and its additions beside them, for the reduction of its argument.
_MULTIPLY_ADDS, _REDUCTION = 16, 2


def explain_functions(pair: Pair) -> list[Found]:
    """The causes at a place that evaluates functions value by value, or for the rows of a softmax, without products."""
    measured, estimated = pair.lanes
    account = Account(pair, measured, estimated)
    values = estimated[TRANSCENDENTAL]
    rows = _rows(estimated)
    gap = account.total(measured.own) + account.total(measured.foreign) - pair.flop(pair.estimated)
    if not rows:
        return _value_by_value(pair, gap, values)
    computed = _computed(measured, values, rows)
    worth = account.total({one: _round(count, computed) for one, count in measured.own.items()})
    each = worth - _round(pair.flop(pair.estimated), values)
    if measured.foreign or not 0 <= each < _most(pair):
        return _on_average(pair, gap, values)
    found = [_named(pair, each * values, f"{each + 1} FLOP for each function value")]
    if computed > values:
        shown = (
            f"rows of {values // rows} values are rounded up to whole vectors of {measured.wide} lanes, to the digit"
        )
        found.append(Found(causes.PADDED_LANES, worth * (computed - values), shown))
    rest = gap - sum(one.flop for one in found)
    if abs(rest) > rows * _MERGES * max(measured.wide, 4):
        return _on_average(pair, gap, values)
    return [*found, Found(causes.LANE_SUMS, rest, "the lanes of a vector are put together for each row")]


def explain_attention(pair: Pair) -> list[Found]:
    """The causes where products and a softmax between them are one operator, or were taken together."""
    measured, estimated = pair.lanes
    account = Account(pair, measured, estimated)
    products = [each for shapes in pair.shapes for each in products_of(shapes)]
    values, rows = estimated[TRANSCENDENTAL], _rows(estimated)
    if not estimated.foreign and sum(measured.foreign.values()) >= values:
        measured = measured.together  # all functions are in double precision, not only those at the ends of rows
    if not rows or sum(each.mac for each in products) != pair.mac:
        return _together(pair, account, values)
    made = _products(measured, products, values, rows)
    if made is None:
        return _together(pair, account, values)
    done, computed, blocks = made
    found = []
    if done != pair.mac:
        names = ", ".join(f"{name} to a multiple of {block}" for name, block in blocks.items())
        shown = (
            f"products are those of sizes rounded up, {names}; what is left is a whole number for each function value"
        )
        found.append(Found(causes.PADDED_LANES, 2 * (done - pair.mac), shown))
    # Now without the products: a softmax, and additions that belong to either.
    counts = {one: count for one, count in measured.own.items() if one is not ADD and one not in FUSED}
    counts[FMA] = measured.fused - done
    added = measured[ADD] - estimated[ADD]
    reduction = min(_REDUCTION, max(0, added // computed))
    fixed = account.total({one: count for one, count in estimated.own.items() if one not in (ADD, FMA)})
    worth = account.total({one: _round(count, computed) for one, count in counts.items()}) + reduction
    function = worth * min(values, computed) - fixed
    if not 0 <= function < _MOST_BESIDE * values:
        return []
    found.append(_named(pair, function, f"{function / values + 1:.4g} FLOP for each function value"))
    if computed > values:
        shown = (
            f"rows of {values // rows} values are rounded up to whole vectors of {measured.wide} lanes, to the digit"
        )
        found.append(Found(causes.PADDED_LANES, worth * (computed - values), shown))
    results = sum(each.results for each in products)
    sums = added - reduction * computed
    limit = sum((each.inner // 8 + max(measured.wide, 4)) * each.results for each in products)
    if 0 < sums <= limit:
        shown = f"additions beside the products: {sums / results:.3g} for each result on average"
        found.append(Found(causes.PARTIAL_SUMS, sums, shown))
        sums = 0
    rest = account.total(counts) + reduction * computed + sums - worth * computed
    if rest and abs(rest) <= rows * _BLOCKS * _MERGES * max(measured.wide, 4):
        found.append(Found(causes.LANE_SUMS, rest, "the lanes of a vector are put together for each row"))
    foreign = account.total(measured.foreign)
    if foreign and foreign <= _MOST * values:
        shown = "ends of rows are computed value by value, by functions in double precision"
        found.append(_named(pair, foreign, shown))
    return found


def _products(
    measured: Lanes, products: list[Product], values: int, rows: int
) -> tuple[int, int, dict[str, int]] | None:
    """How many products are made, values are computed, and which sizes are rounded up.

    A whole number of multiply-adds must be left for each value. Of several ways that one is taken which leaves a whole number of
    multiplications, too; instructions wider than those of the products tell at once.
    """
    apart = measured.widest.get(FMA, 0)
    whole = _vectors(measured, values, rows)
    functions = [
        (one, apart // one) for one in whole if apart and apart % one == 0 and 0 < apart // one <= _MULTIPLY_ADDS
    ]
    made = [(sum(one.products for one in each), blocks) for blocks, each in sized(products, padding=True)]
    for done, blocks in made if functions else ():
        for computed, fused in functions:
            if 0 <= measured.fused - done - fused * computed <= 2 * rows:
                return done, computed, blocks
    first: tuple[int, int, dict[str, int]] | None = None
    for done, blocks in made:
        left = measured.fused - done
        for computed in whole:
            if left > 0 and left % computed in (0, rows, 2 * rows) and 0 < left // computed <= _MULTIPLY_ADDS:
                if _multiplied(measured, products, computed, rows):
                    return done, computed, blocks
                first = first or (done, computed, blocks)
    return first


def _together(pair: Pair, account: Account, values: int) -> list[Found]:
    """Where products cannot be told from functions to the digit: all of it, if an exponential may well cost that much."""
    gap = account.total(account.measured.own) + account.total(account.measured.foreign) - pair.flop(pair.estimated)
    if not _LEAST * values <= gap <= _MOST_BESIDE * values:
        return []
    return [
        _named(pair, gap, f"{gap / values + 1:.3g} FLOP for each function value, with what fills up vectors and blocks")
    ]


def _multiplied(measured: Lanes, products: list[Product], computed: int, rows: int) -> bool:
    """Whether multiplications are a whole number for each value, and for each result or row of a block."""
    for times in range(3):
        for results in {each.results for each in products}:
            left = measured[MUL] - times * results
            if left >= 0 and left % computed == 0:
                return True
    wide = max(measured.wide, 1)
    return measured[MUL] % computed <= rows * _BLOCKS * wide and (measured[MUL] % computed) % rows == 0


def _value_by_value(pair: Pair, gap: int, values: int) -> list[Found]:
    each = _round(gap, values)
    if gap < 0 and each < 0:
        return [Found(causes.SHORTCUT, gap, "fewer operations than the formula has beside its functions")]
    if not 0 <= each < _most(pair):
        return []
    calls = sum(shapes.calls for shapes in pair.shapes)
    ends = calls * max(16, pair.lanes[0].wide) * (each + 16)
    if abs(gap - each * values) > ends:
        return _on_average(pair, gap, values)
    return [_named(pair, gap, f"{each + 1} FLOP for each function value")]


def _on_average(pair: Pair, gap: int, values: int) -> list[Found]:
    if not 0 <= gap < _most(pair) * values:
        return []
    return [_named(pair, gap, f"{gap / values + 1:.3g} FLOP for each function value on average")]


def _named(pair: Pair, flop: int, shown: str) -> Found:
    return Found(causes.POLYNOMIAL, flop, f"{pair.place.op.rpartition('::')[2].rstrip('_')}: {shown}")


def _rows(estimated: Lanes) -> int:
    """Rows of a softmax: one comparison and one addition fewer than there are values; 0 if there is no softmax."""
    rows = estimated[TRANSCENDENTAL] - estimated[MINMAX]
    return rows if estimated[MINMAX] and 0 < rows < estimated[TRANSCENDENTAL] else 0


def _computed(measured: Lanes, values: int, rows: int) -> int:
    """Values that vectors compute: rows rounded up to whole ones, or down, if that makes the account come out even."""
    for operation in (FMA, MUL):
        for computed in _vectors(measured, values, rows):
            if (
                measured[operation]
                and measured[operation] % computed == 0
                and measured[operation] // computed <= _MULTIPLY_ADDS
            ):
                return computed
    return values


def _vectors(measured: Lanes, values: int, rows: int) -> list[int]:
    """Values with rows rounded up to whole vectors, as they are, and rounded down."""
    length, wide = values // rows, measured.wide
    return [
        each
        for each in dict.fromkeys((rows * (-(-length // wide) * wide), values, rows * (length // wide * wide)))
        if each
    ]


def _round(count: int, by: int) -> int:
    return (2 * count + by) // (2 * by)


def _most(pair: Pair) -> int:
    return _MOST_OF_POWERS if any(name in each.op for each in pair.shapes for name in _POWERS) else _MOST
