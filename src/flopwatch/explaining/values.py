"""Causes in operators that work value by value, or sum up rows: functions, sums, norms, pools.

An account of additions, multiplications and so on is made of what is left when the estimate is taken from the measurement.
Each step takes out of it what it can show; what no step takes stays unexplained.
"""

from __future__ import annotations

from math import prod

from flopwatch.explaining import causes
from flopwatch.explaining.account import Account, Extent
from flopwatch.explaining.causes import Found
from flopwatch.explaining.pairing import Pair
from flopwatch.flops.operations import Operation
from flopwatch.record import Shapes

ADD, MUL, FMA, DIV = Operation.ADD, Operation.MUL, Operation.FMA, Operation.DIV
SQRT, MINMAX = Operation.SQRT, Operation.MINMAX

# Scalar operations of a call, to share out its work.
_SHARING = 64
# Bytes of a value, in single precision.
_BYTES = 4
# Sums are kept in so many accumulators, each in lanes, on so many levels, which are added up at the end ...
_ACCUMULATORS = 16
# (at least eight lanes, in two registers where these are short) ...
_NARROWEST = 8
# ... and each level passes on what it has after so many additions.
_STEPS = 15
# Vectors that the end of a row costs at most, and operations for the position of a value and its weights.
_VECTORS_OF_ROW, _STEPS_OF_WEIGHTS = 8, 16
# Lanes of a short vector, which compilers make of code for one value after another.
_SHORT = 4
# Operators that take the square root of a sum of squares, and FLOP of one in two parts, at most.
_HYPOTENUSES, _MOST_OF_HYPOTENUSE = ("abs", "hypot"), 160
# A formulation of an operator needs so many operations more or less for a value than another one, at most.
_STEPS_OF_VALUE = 6


def explain_values(pair: Pair) -> list[Found]:
    """The causes at a place that does no products."""
    measured, estimated = pair.lanes
    extent = Extent.of(pair.shapes)
    overhead = _sharing(pair, extent)
    account = Account(pair, measured if overhead or estimated.foreign else measured.together, estimated, found=overhead)
    if any("fft" in each.op or ("linalg" in each.op and "norm" not in each.op) for each in pair.shapes):
        _textbook(account)
        return account.found
    _addresses(account)
    _compared(account)
    _fused(account)
    _rounded_rows(account)
    _norm(account, extent)
    _sums(account, extent)
    _first_values(account, extent)
    _ends(account)
    _suppressed(account)
    _scattered(account)
    _weights(account, extent)
    _steps(account, extent)
    return account.found


def _sharing(pair: Pair, extent: Extent) -> list[Found]:
    """A little scalar double precision in an operator of single precision."""
    measured, estimated = pair.lanes
    foreign = measured.foreign
    if not foreign or estimated.foreign or sum(foreign.values()) > _SHARING * max(1, extent.calls):
        return []
    fused = foreign.get(FMA, 0)
    shown = "scalar double precision, which nothing in the operator is made of"
    return [Found(causes.OVERHEAD, sum(foreign.values()) + fused, shown)]


def _textbook(account: Account) -> None:
    """Transforms by another radix, factorisations by blocks or sweeps: the estimate counts the loops of the textbook."""
    left = {operation: count for operation, count in account.left.items() if count}
    if abs(account.total(left)) <= account.total(account.estimated.own):
        shown = "the estimate counts the loops of the textbook, libraries have others"
        account.explain(causes.FORMULATION, left, shown)


def _addresses(account: Account) -> None:
    """Scales and positions of a picture that is resized, which are worked out anew for each of its rows."""
    measured, estimated = account.total(account.measured.own), account.total(account.estimated.own)
    if account.measured.wide == 1 and measured > 0 and measured + estimated < account.pair.written // _BYTES:
        shown = "scalar, and less than one operation for each value: positions, not values"
        account.explain(causes.OVERHEAD, dict(account.left), shown)


def _compared(account: Account) -> None:
    wanted, done = account.estimated[MINMAX], account.measured[MINMAX]
    if 0 < 2 * done < wanted and _windows(account.pair.shapes):
        account.explain(
            causes.COMPARED, {MINMAX: done - wanted}, "few instructions for maxima and minima were executed"
        )
    elif wanted and not done:
        account.explain(causes.COMPARED, {MINMAX: -wanted}, "no instruction for maxima and minima was executed")


def _fused(account: Account) -> None:
    """Multiplications and additions that are made in one instruction cost the same; an addition that has become one costs one more."""
    left = account.left
    both = min(left.get(FMA, 0), -left.get(MUL, 0), -left.get(ADD, 0))
    if both > 0:
        account.explain("", {FMA: both, MUL: -both, ADD: -both}, "")
    apart = min(-left.get(FMA, 0), left.get(MUL, 0), left.get(ADD, 0))
    if apart > 0:
        account.explain("", {FMA: -apart, MUL: apart, ADD: apart}, "")
    for one, other in ((DIV, MUL), (MUL, DIV)):
        swapped = min(left.get(one, 0), -left.get(other, 0))
        if swapped > 0:
            account.explain("", {one: swapped, other: -swapped}, "")
    alpha = min(left.get(FMA, 0), -left.get(ADD, 0))
    plain = not any(account.estimated[one] for one in (MUL, FMA, DIV, SQRT))
    if alpha > 0 and plain:
        account.explain(causes.ALPHA, {FMA: alpha, ADD: -alpha}, "as many multiply-adds more as additions less")


def _rounded_rows(account: Account) -> None:
    """What fills up vectors at the ends of rows, where it is predicted to the digit."""
    wide = account.measured.wide
    if wide == 1:
        return
    for operation in (FMA, MUL, ADD, MINMAX):
        extra = account.left.get(operation, 0)
        if extra <= 0:
            continue
        predicted = 0
        for shapes in account.pair.shapes:
            for size in _row_lengths(shapes):
                rows = shapes.calls * (prod(shapes.outputs[0]) // size)
                predicted = rows * (-(-size // wide) * wide - size)
                if predicted and extra % predicted == 0 and extra // predicted <= 2:
                    shown = f"rows of {size} values are rounded up to whole vectors of {wide} lanes, to the digit"
                    account.explain(causes.PADDED_LANES, {operation: extra}, shown)
                    extra = 0
                    break


def _row_lengths(shapes: Shapes) -> list[int]:
    out = shapes.outputs[0] if shapes.outputs else ()
    lengths = [prod(out[-count:]) for count in range(len(out) - 1, 0, -1)]
    return [length for length in dict.fromkeys(lengths) if length]


def _norm(account: Account, extent: Extent) -> None:
    """Mean and variance in other steps: a whole number of operations for each value, and what adds up lanes for each row."""
    rows, values = _norm_rows(account), max(extent.results, extent.largest * extent.calls)
    if not values or not 0 < rows <= values:
        return
    steps = {operation: _whole(account.left.get(operation, 0), values) for operation in (ADD, MUL, FMA, DIV)}
    each = account.total(steps)
    if each and abs(each) <= _STEPS_OF_VALUE:
        shown = f"{each:+d} FLOP for each value, a whole number"
        account.explain(causes.FORMULATION, {one: count * values for one, count in steps.items()}, shown)
    elif any(steps.values()) and not each:
        account.explain("", {one: count * values for one, count in steps.items()}, "")
    rest = dict(account.left)
    if sum(abs(count) for count in rest.values()) <= _merging(account, rows, values):
        account.explain(
            causes.LANE_SUMS, rest, "mean and variance are kept for each lane and put together for each row"
        )


def _norm_rows(account: Account) -> int:
    """Means of a norm: a square root for each in forward; in backward, as many as gradients of the weights."""
    if account.estimated[SQRT] and any(_is_norm(each.op) for each in account.pair.shapes):
        return account.estimated[SQRT]
    return sum(
        each.calls * prod(each.outputs[1])
        for each in account.pair.shapes
        if "norm" in each.op and "backward" in each.op and len(each.outputs) > 1
    )


def _is_norm(op: str) -> bool:
    return "norm" in op.lower() or op.rpartition("::")[2].startswith(("std", "var"))


def _whole(lanes: int, values: int) -> int:
    """The nearest whole number of operations for each value."""
    return (2 * lanes + values) // (2 * values)


def _merging(account: Account, rows: int, values: int) -> int:
    """Lanes that it takes at most to put accumulators together, twice for a mean and a variance."""
    return 2 * rows * _ACCUMULATORS * account.measured.wide + values


def _sums(account: Account, extent: Extent) -> None:
    """Additions beyond those that a sum needs: one for each lane and accumulator, which begin with zero."""
    extra, results = account.left.get(ADD, 0), extent.results
    if any(count < 0 for count in account.left.values()):
        return
    if extra <= 0 or not results or extent.values <= results:
        if extra > 0 and _windows(account.pair.shapes):
            _zeroes(account, extent, extra)
        return
    if extra % results == 0 and extra == results:
        account.explain(causes.LANE_SUMS, {ADD: extra}, "each sum begins with zero: one addition more for each result")
        return
    wide = max(account.measured.wide, _NARROWEST)
    limit = results * (_ACCUMULATORS + 1) * wide + extent.values // _STEPS
    if account.measured.wide > 1 and extra <= limit:
        per = f"{extra // results} additions" if extra % results == 0 else f"{extra / results:.2f} additions on average"
        account.explain(causes.LANE_SUMS, {ADD: extra}, f"{per} more for each sum")
    else:
        _zeroes(account, extent, extra)


def _windows(shapes: tuple[Shapes, ...]) -> bool:
    return any("pool" in each.op.lower() for each in shapes)


def _zeroes(account: Account, extent: Extent, extra: int) -> None:
    """Pools begin with zero: as many additions as values in the window, and one for its size; never more than two a result."""
    if _windows(account.pair.shapes) and extra <= 2 * extent.results:
        per = extra / extent.results
        account.explain(
            causes.LANE_SUMS, {ADD: extra}, f"windows are summed up from zero: {per:.4g} additions more for each result"
        )


def _first_values(account: Account, extent: Extent) -> None:
    """Maxima of windows begin with the least number: one comparison more for each; at the borders of an image some more."""
    extra = account.left.get(MINMAX, 0)
    if 0 < extra <= 2 * extent.results and _windows(account.pair.shapes):
        per = extra / extent.results
        shown = f"maxima begin with the least number: {per:.4g} comparisons more for each result"
        account.explain(causes.LANE_SUMS, {MINMAX: extra}, shown)


def _ends(account: Account) -> None:
    """Rows of a softmax's derivative: the last vector is filled up, and lanes are put together."""
    shapes = [each for each in account.pair.shapes if "softmax" in each.op and each.outputs and each.outputs[0]]
    rows = sum(each.calls * prod(each.outputs[0][:-1]) for each in shapes)
    left = {operation: count for operation, count in account.left.items() if count}
    if rows and 0 < account.total(left) <= rows * _VECTORS_OF_ROW * account.measured.wide:
        account.explain(causes.LANE_SUMS, left, "each row has vectors filled up, and lanes put together")


def _suppressed(account: Account) -> None:
    """Boxes are compared with those that are left only, and the estimate has all pairs."""
    left = {operation: count for operation, count in account.left.items() if count}
    if account.total(left) < 0 and any(each.op.endswith("nms") for each in account.pair.shapes):
        account.explain(causes.SHORTCUT, left, "boxes that are suppressed already are compared with no other")


def _weights(account: Account, extent: Extent) -> None:
    """Resizing works out for each value where it comes from, and with which weights; a formula has the weights once."""
    left = {operation: count for operation, count in account.left.items() if count}
    resized = any("upsample" in each.op or "interpolate" in each.op for each in account.pair.shapes)
    if resized and 0 < account.total(left) <= _STEPS_OF_WEIGHTS * extent.largest:
        each = account.total(left) / extent.largest
        account.explain(causes.OVERHEAD, left, f"positions and weights are worked out for each value: {each:.3g} FLOP")


def _scattered(account: Account) -> None:
    """Values that do not lie side by side fill only part of a short vector: at least one of its lanes."""
    left = {operation: count for operation, count in account.left.items() if count}
    if not left or any(count < 0 or account.accounted(one) <= 0 for one, count in left.items()):
        return
    short = {width: lanes for width, lanes in account.measured.by_width.items() if 1 < width <= _SHORT}
    for operation, count in left.items():
        room = sum(lanes.get(operation, 0) * (width - 1) // width for width, lanes in short.items())
        if count > room:
            return
    shown = "values that do not lie side by side fill only part of each short vector"
    account.explain(causes.PADDED_LANES, left, shown)


def _steps(account: Account, extent: Extent) -> None:
    """What is left, if it is a small number of operations for each result, and arithmetic stands on both sides."""
    left = {operation: count for operation, count in account.left.items() if count}
    total, shapes = account.total(left), account.pair.shapes
    if not total or not shapes or not account.measured.own or not account.estimated.own:
        return
    results = extent.results
    if results and total % results == 0 and abs(total // results) <= _STEPS_OF_VALUE:
        shown = f"{total // results:+d} FLOP for each value, a whole number"
        account.explain(causes.FORMULATION, left, shown)
    elif (
        any(each.op.rpartition("::")[2] in _HYPOTENUSES for each in shapes)
        and 0 < total <= _MOST_OF_HYPOTENUSE * results
    ):
        shown = f"a hypotenuse that does not overflow: {total / results:.4g} FLOP more for each value"
        account.explain(causes.POLYNOMIAL, left, shown)
    elif len(shapes) > 1 and abs(total) <= _STEPS_OF_VALUE * extent.largest:
        each = f"{total / extent.largest:+.3g} FLOP for each value on average"
        shown = f"one kernel for what the estimate makes of {len(shapes)} operators: {each}"
        account.explain(causes.FORMULATION, left, shown)
