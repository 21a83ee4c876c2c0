"""Causes in convolutions and matrix products: what is predicted from their shapes must be what was counted, to the digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from math import prod

from flopwatch.explaining import causes
from flopwatch.explaining.causes import Found
from flopwatch.explaining.lanes import Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.explaining.sizes import POSITIONS, WIDTH, Product, Rounded, products_of, said, sized
from flopwatch.flops.operations import Operation

# Lanes of the widest vector: a sum that is kept apart by lane is added up in no more steps.
_LANES = 16
# A library multiplies a result by alpha, and what was there by beta: not more than twice per result.
_SCALINGS = (0, 1, 2)
# Scalar multiplications of a call, for sizes and strides.
_STRAY = 64
# Products that a panel of a sum has at least.
_PANEL = 64
# Products of one place whose scalings are tried one by one.
_FEW = 2
# FLOP that it takes at most to find the range of values, scale, round and clamp one.
_CONVERSION = 8
# Tiles of Winograd's filtering; transforms multiply a little, too.
_TILES, _ALMOST = (2, 4, 6), 1.05
# Additions of the transforms for each result, at least.
_TRANSFORMS = 4


@dataclass(frozen=True, slots=True)
class Match:
    """How a kernel makes its products: whether on padding too, with which sizes rounded up, and what it does beside.

    `base` are the multiply-accumulates that it has to do, `products` those that it does, `scaled` multiplications by factors,
    `first` products that are added to nothing, and `added` additions beyond one for each other product; `sums` are these for
    each result, where they are the same for all. `exact` says whether all that was predicted to the digit.
    """

    base: int
    products: int
    scaled: int
    first: int
    added: int
    blocks: dict[str, int]
    sums: int | None
    exact: bool = True


def explain_products(pair: Pair) -> list[Found]:
    """The causes in a place that does products, and additions beside them, and nothing else; empty if no prediction fits."""
    measured, estimated = pair.lanes
    products = [each for shapes in pair.shapes for each in products_of(shapes)]
    if not products or sum(each.mac for each in products) != pair.mac:
        return []
    bias, factors = estimated[Operation.ADD], estimated[Operation.MUL]
    # Gradients that meet are summed up beside the products, by multiply-adds.
    met = sum(each.calls * prod(each.outputs[0]) for each in pair.shapes if not each.mac and each.outputs)
    for scaling in (False, True):
        for alpha in (0, met) if 0 < met <= bias else (0,):
            match = match_products(products, measured.products - alpha, measured.sums - alpha, scaling=scaling)
            if match is None:
                continue
            found = [*causes_of(match, products, bias - alpha, factors), *_beside(measured, estimated)]
            shown = "gradients that meet are summed by multiply-adds"
            return [*found, Found(causes.ALPHA, alpha, shown)] if alpha else found
    match = _roughly(products, measured)
    if match is not None:
        return [*causes_of(match, products, bias, factors), *_beside(measured, estimated)]
    return _winograd(products, measured, estimated)


def explain_integers(pair: Pair) -> list[Found]:
    """The causes at a place whose products are of integers, and so no FLOP: what it takes to make integers, and numbers again."""
    values = sum(
        each.calls * (prod(each.inputs[0]) + prod(each.outputs[0]))
        for each in pair.shapes
        if each.inputs and each.outputs
    )
    flop = pair.flop(pair.measured) - pair.flop(pair.estimated)
    if not 0 < flop <= _CONVERSION * values:
        return []
    return [Found(causes.CONVERSION, flop, f"{flop / values:.3g} FLOP for each value that goes in or comes out")]


def causes_of(match: Match, products: Sequence[Product], bias: int, factors: int = 0) -> list[Found]:
    """What a match amounts to, with so many additions of a bias and multiplications by factors estimated.

    A multiply-add is two operations, whatever instructions do it.
    """
    mac = sum(each.mac for each in products)
    found = []
    if match.base != mac:
        shown = "products are the multiply-accumulates less those on padding, to the digit"
        found.append(Found(causes.PADDING, 2 * (match.base - mac), shown))
    if match.products != match.base:
        shown = f"products are those of sizes rounded up, {said(match.blocks)}, to the digit"
        found.append(Found(causes.PADDED_LANES, 2 * (match.products - match.base), shown))
    if match.scaled > factors:
        each = (
            "a whole number for each element"
            if match.exact
            else "fewer than three for each result and one for each element"
        )
        shown = f"multiplications beside the products: {each}"
        found.append(Found(causes.SCALING, match.scaled - factors, shown))
    if match.first:
        found.append(Found(causes.FIRST, -match.first, "one addition for each result is missing"))
    if match.added >= bias:
        each = "to put lanes of vectors together" if match.sums is None else f"{match.sums} for each result"
        shown = f"additions beside the products: {each}" + (", the bias among them" if bias else "")
        found.append(Found(causes.PARTIAL_SUMS, match.added - bias, shown))
    else:
        shown = f"{match.added:,} additions beside the products for {bias:,} of a bias"
        found.append(
            Found(causes.INITIAL_BIAS, match.added - bias, shown if match.added else "no addition beside the products")
        )
    return [each for each in found if each.flop]


def match_products(products: Sequence[Product], done: int, summed: int, *, scaling: bool) -> Match | None:
    """The simplest way of making products that gives the multiplications and additions that were counted; None if there is none.

    The multiplications must fit exactly; additions beyond them too, as a whole number for each result, or else be no more than
    it takes to add up the lanes of a vector for each. `scaling` allows for multiplications by factors.
    """
    loose: Match | None = None
    alone = sum(each.results for each in products if each.inner == 1)
    for padding in _paddings(products):
        base = sum(
            each.mac if with_it else each.mac - each.padding for each, with_it in zip(products, padding, strict=True)
        )
        for blocks, made in sized(products, padding):
            computed, results = sum(each.products for each in made), sum(each.results for each in made)
            # A kernel may do more than the products, by a little: nothing else is worth looking at.
            if not 0 <= done - computed <= _most_scaled(products, results):
                continue
            if done != computed and not (scaling and _scaled(products, made, done - computed)):
                continue
            for first in dict.fromkeys((0, alone, results)):
                added = summed - computed + first
                if not 0 <= added <= _limit(products, made):
                    continue
                per_result = _per_result(products, made, added)
                match = Match(base, computed, done - computed, first, added, blocks, per_result)
                if per_result is not None or _panels(products, made, added):
                    return match
                loose = loose or match
    return loose


def _paddings(products: Sequence[Product]) -> list[tuple[bool, ...]]:
    """Which of the products are made with padding: none, all, or one of two."""
    some = any(each.padding for each in products)
    uniform = [(with_it,) * len(products) for with_it in ((False, True) if some else (False,))]
    return [*uniform, (False, True), (True, False)] if some and len(products) == 2 else uniform


def _roughly(products: Sequence[Product], measured: Lanes) -> Match | None:
    """No prediction to the digit, where the edges of matrices are made by other code: what is scaled is bounded, no more.

    It must be seen, too: at least half of it as multiplications that are not fused with the additions of products.
    """
    done, summed = measured.products, measured.sums
    mac, padding = sum(each.mac for each in products), sum(each.padding for each in products)
    most = 2 * sum(each.results for each in products) + sum(sum(each.packed) for each in products)
    for base in dict.fromkeys((mac, mac - padding)):
        made = [Rounded(each.mac if base == mac else each.mac - each.padding, each.results, {}) for each in products]
        scaled, added = done - base, summed - base
        if 0 <= scaled <= min(most + _STRAY, 2 * measured[Operation.MUL]) and 0 <= added <= _limit(products, made):
            return Match(base, base, scaled, 0, added, {}, None, exact=False)
    return None


def _scaled(products: Sequence[Product], made: Sequence[Rounded], left: int) -> bool:
    """Whether `left` multiplications scale results or matrices a whole number of times."""
    packed = {sum(sizes) for sizes in every(*((0, *each.packed) for each in products[:_FEW]))}
    packed.add(2 * max(packed))
    padded, plain = sum(each.results for each in made), sum(each.results for each in products)
    for times in every(_SCALINGS, repeat=min(len(products), _FEW)):
        for results in ([each.results for each in made], [each.results for each in products]):
            rest = left - sum(count * each for count, each in zip(times, results, strict=False))
            if rest in packed:
                return True
    # Or each panel of a sum is scaled when it is added to the result.
    panels = max(each.inner for each in products) // _PANEL
    return any(count and left % count == 0 and left // count <= panels for count in (padded, plain))


def _most_scaled(products: Sequence[Product], results: int) -> int:
    panels = max(each.inner for each in products) // _PANEL
    return max(2, panels) * results + sum(max(each.packed) for each in products)


def _per_result(products: Sequence[Product], made: Sequence[Rounded], added: int) -> int | None:
    for results in (sum(each.results for each in made), sum(each.results for each in products)):
        if results and added % results == 0:
            return added // results
    return None


def _panels(products: Sequence[Product], made: Sequence[Rounded], added: int) -> bool:
    """Whether sums are made in panels of one length and each panel is added to the result."""
    if len(products) < 2:
        return False
    for length in range(8, 2 * max(each.inner for each in products), 8):
        panels = [-(-each.inner // length) for each in products]
        for less in (0, 1):
            if added == sum((n - less) * each.results for n, each in zip(panels, made, strict=True)):
                return True
    return False


def _limit(products: Sequence[Product], made: Sequence[Rounded]) -> int:
    """At least eight products make a partial sum; the lanes of a vector are added up at the end."""
    return sum((each.inner // 8 + _LANES) * size.results for each, size in zip(products, made, strict=True))


def _winograd(products: Sequence[Product], measured: Lanes, estimated: Lanes) -> list[Found]:
    """Winograd's minimal filtering: (t + 2)² products for each tile of t² results of a filter of 3 by 3.

    It transforms what goes in and comes out, by additions: without these, products are missing for another reason.
    """
    results = sum(each.results for each in products)
    if (
        any(each.kernel != 9 or WIDTH not in each.sizes for each in products)
        or measured[Operation.ADD] < _TRANSFORMS * results
    ):
        return []
    needed = sum(each.mac - each.padding for each in products)
    for tile in _TILES:
        predicted = sum(_tiled(each, tile) for each in products)
        if predicted <= measured.products <= min(_ALMOST * predicted, needed):
            shown = f"{needed / measured.products:.2f} times fewer products than without: those of tiles of {tile} by {tile}"
            padding = -2 * sum(each.padding for each in products)
            other = measured.products + measured.sums - 2 * needed - estimated[Operation.ADD]
            found = [Found(causes.PADDING, padding, "there is none in transformed tiles")] if padding else []
            return [*found, Found(causes.ALGORITHM, other, f"{shown}; additions transform what goes in and comes out")]
    return []


def _tiled(each: Product, tile: int) -> int:
    width = each.sizes[WIDTH]
    height = each.sizes[POSITIONS] // width
    tiles = -(-width // tile) * -(-height // tile)
    return each.mac * tiles * (tile + 2) ** 2 // (9 * width * height)


def _beside(measured: Lanes, estimated: Lanes) -> list[Found]:
    """Scalar double precision beside products: how the work is shared out."""
    spare = sum(measured.foreign.values())
    if spare and not estimated.foreign:
        fused = measured.foreign.get(Operation.FMA, 0)
        shown = "scalar double precision, which nothing in the operator is made of"
        return [Found(causes.OVERHEAD, spare + fused, shown)]
    return []
