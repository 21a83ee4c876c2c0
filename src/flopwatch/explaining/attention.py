"""Causes in attention: products with a softmax between them, and its derivative."""

from __future__ import annotations

from flopwatch.explaining import causes
from flopwatch.explaining.account import Account
from flopwatch.explaining.causes import Found
from flopwatch.explaining.functions import MERGES, MOST, named, rows_of, vectors_of, whole
from flopwatch.explaining.lanes import FUSED, Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.explaining.sizes import COLUMNS, Product, derivatives_of, products_of, said, sized
from flopwatch.flops.operations import Operation

ADD, MUL, FMA = Operation.ADD, Operation.MUL, Operation.FMA
TRANSCENDENTAL = Operation.TRANSCENDENTAL

# FLOP of an exponential or hyperbolic tangent beside products, at least and at most.
_LEAST, _MOST_BESIDE = 4, 60
# Where rows come in blocks, what was summed up before is scaled.
_BLOCKS = 4
# Multiply-adds of an exponential, at most, and its additions beside them, for the reduction of its argument.
_MULTIPLY_ADDS, _REDUCTION = 16, 2


def explain_attention(pair: Pair) -> list[Found]:
    """The causes where products and functions between them are one operator, or were taken together."""
    measured, estimated = pair.lanes
    products = [each for shapes in pair.shapes for each in products_of(shapes)]
    values, rows = estimated[TRANSCENDENTAL], rows_of(estimated)
    account = Account(pair, measured, estimated)
    if not rows or sum(each.mac for each in products) != pair.mac:
        return _together(pair, account, values)
    return _of_softmax(account, products, values, rows) or _together(pair, account, values)


def is_derivative(pair: Pair) -> bool:
    """Whether a place has the derivative of a whole attention."""
    return any("attention" in each.op and "backward" in each.op for each in pair.shapes)


def explain_derivative(pair: Pair) -> list[Found]:
    """The causes in the derivative of attention: beside its four products the scores and their softmax are computed once more."""
    measured, estimated = pair.lanes
    products: list[Product] = []
    values = rows = again = 0
    for shapes in pair.shapes:
        if not shapes.mac or len(shapes.inputs) < 4 or any(len(shape) < 3 for shape in shapes.inputs[:4]):
            return []
        of, scores = derivatives_of(shapes)
        products += of
        values += scores.results
        rows += scores.results // scores.sizes[COLUMNS]
        again += scores.mac
    if sum(each.mac for each in products) != pair.mac + again:
        return []
    found = _of_softmax(Account(pair, measured, estimated), products, values, rows)
    shown = "what is left of the multiply-adds beside them is a whole number for each score"
    return (
        [Found(causes.RECOMPUTED, 2 * again, f"scores are computed again from queries and keys: {shown}"), *found]
        if found
        else []
    )


def _of_softmax(account: Account, products: list[Product], values: int, rows: int) -> list[Found]:
    """The causes where these products and a softmax of so many values in so many rows are made; empty if that does not fit."""
    pair, measured, estimated = account.pair, account.measured, account.estimated
    counted = 1 if estimated[TRANSCENDENTAL] else 0
    mac = sum(each.mac for each in products)
    if not estimated.foreign and sum(measured.foreign.values()) >= values:
        measured = measured.together  # all functions are in double precision, not only those at the ends of rows
    made = _products(measured, products, values, rows)
    if made is None:
        return []
    done, computed, blocks = made
    found = []
    if done != mac:
        names = said(blocks)
        shown = (
            f"products are those of sizes rounded up, {names}; what is left is a whole number for each function value"
        )
        found.append(Found(causes.PADDED_LANES, 2 * (done - mac), shown))
    # Now without the products: a softmax, and additions that belong to either.
    counts = {one: count for one, count in measured.own.items() if one is not ADD and one not in FUSED}
    counts[FMA] = measured.fused - done
    added = measured[ADD] - estimated[ADD]
    reduction = min(_REDUCTION, max(0, added // computed))
    fixed = account.total({one: count for one, count in estimated.own.items() if one not in (ADD, FMA)})
    worth = account.total({one: whole(count, computed) for one, count in counts.items()}) + reduction
    function = worth * min(values, computed) - fixed
    if not 0 <= function < _MOST_BESIDE * values:
        return []
    found.append(named(pair, function, f"{function / values + counted:.4g} FLOP for each function value"))
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
    if rest and abs(rest) <= rows * _BLOCKS * MERGES * max(measured.wide, 4):
        found.append(Found(causes.LANE_SUMS, rest, "the lanes of a vector are put together for each row"))
    foreign = account.total(measured.foreign)
    if foreign and foreign <= MOST * values:
        shown = "ends of rows are computed value by value, by functions in double precision"
        found.append(named(pair, foreign, shown))
    return found


def _products(
    measured: Lanes, products: list[Product], values: int, rows: int
) -> tuple[int, int, dict[str, int]] | None:
    """How many products are made, values are computed, and which sizes are rounded up.

    A whole number of multiply-adds must be left for each value. Of several ways that one is taken which leaves a whole number of
    multiplications, too; instructions wider than those of the products tell at once.
    """
    apart = measured.widest.get(FMA, 0)
    vectors = vectors_of(measured, values, rows)
    functions = [
        (one, apart // one) for one in vectors if apart and apart % one == 0 and 0 < apart // one <= _MULTIPLY_ADDS
    ]
    made = [(sum(one.products for one in each), blocks) for blocks, each in sized(products, [True] * len(products))]
    for done, blocks in made if functions else ():
        for computed, fused in functions:
            if 0 <= measured.fused - done - fused * computed <= 2 * rows:
                return done, computed, blocks
    first: tuple[int, int, dict[str, int]] | None = None
    for done, blocks in made:
        left = measured.fused - done
        for computed in vectors:
            if left > 0 and left % computed in (0, rows, 2 * rows) and 0 < left // computed <= _MULTIPLY_ADDS:
                if _multiplied(measured, products, computed, rows):
                    return done, computed, blocks
                first = first or (done, computed, blocks)
    return first


def _together(pair: Pair, account: Account, values: int) -> list[Found]:
    """Where products cannot be told from functions to the digit: all of it, if an exponential may well cost that much."""
    gap = account.total(account.measured.own) + account.total(account.measured.foreign) - pair.flop(pair.estimated)
    padding = sum(cell.padding for cell in pair.cells)
    found = []
    if padding and pair.mac - padding <= account.measured.fused < pair.mac:
        shown = "fewer multiply-adds than the estimate has, and not fewer than without padding"
        found.append(Found(causes.PADDING, -2 * padding, shown))
        gap += 2 * padding
    if not _LEAST * values <= gap <= _MOST_BESIDE * values:
        return []
    shown = f"{gap / values + 1:.3g} FLOP for each function value, with what fills up vectors and blocks"
    return [*found, named(pair, gap, shown)]


def _multiplied(measured: Lanes, products: list[Product], computed: int, rows: int) -> bool:
    """Whether multiplications are a whole number for each value, and for each result or row of a block."""
    for times in range(3):
        for results in {each.results for each in products}:
            left = measured[MUL] - times * results
            if left >= 0 and left % computed == 0:
                return True
    wide = max(measured.wide, 1)
    return measured[MUL] % computed <= rows * _BLOCKS * wide and (measured[MUL] % computed) % rows == 0
