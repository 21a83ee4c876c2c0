"""Causes in convolutions and matrix products: what is predicted from their shapes must be what was counted, to the digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every

from flopwatch.explaining import causes
from flopwatch.explaining.causes import Found
from flopwatch.explaining.lanes import Lanes
from flopwatch.explaining.pairing import Pair
from flopwatch.explaining.sizes import Product, Rounded, products_of, sized
from flopwatch.flops.operations import Operation

# Lanes of the widest vector: a sum that is kept apart by lane is added up in no more steps.
_LANES = 16
# A library multiplies a result by alpha, and what was there by beta: not more than twice per result.
_SCALINGS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Match:
    """How a kernel makes its products: whether on padding too, with which sizes rounded up, and what it does beside.

    `base` are the multiply-accumulates that it has to do, `products` those that it does, `scaled` multiplications by factors,
    `added` additions beyond one for each product; `sums` are these for each result, where they are the same for all.
    """

    padding: bool
    base: int
    products: int
    scaled: int
    added: int
    blocks: dict[str, int]
    sums: int | None


def explain_products(pair: Pair) -> list[Found]:
    """The causes in a place that does products, and additions of a bias, and nothing else; empty if no prediction fits."""
    measured, estimated = pair.lanes
    products = [each for shapes in pair.shapes for each in products_of(shapes)]
    if not products or sum(each.mac for each in products) != pair.mac:
        return []
    match = match_products(products, measured.products, measured.sums)
    if match is None:
        return _another_algorithm(products, measured, estimated)
    return [*causes_of(match, products, estimated), *_beside(measured, estimated)]


def causes_of(match: Match, products: Sequence[Product], estimated: Lanes) -> list[Found]:
    """What a match amounts to. A multiply-add is two operations, whatever instructions do it."""
    mac = sum(each.mac for each in products)
    found = []
    if match.base != mac:
        shown = "products are the multiply-accumulates less those on padding, to the digit"
        found.append(Found(causes.PADDING, 2 * (match.base - mac), shown))
    if match.products != match.base:
        blocks = ", ".join(f"{name} to a multiple of {block}" for name, block in match.blocks.items())
        shown = f"products are those of sizes rounded up, {blocks}, to the digit"
        found.append(Found(causes.PADDED_LANES, 2 * (match.products - match.base), shown))
    if match.scaled:
        found.append(Found(causes.SCALING, match.scaled, "multiplications beside the products: a whole number for each element"))
    bias = estimated[Operation.ADD]
    if match.added > bias:
        each = "in lanes of vectors" if match.sums is None else f"{match.sums} for each result, the bias among them"
        if not bias and match.sums is not None:
            each = f"{match.sums} for each result"
        found.append(Found(causes.PARTIAL_SUMS, match.added - bias, f"additions beside the products: {each}"))
    elif match.added < bias:
        shown = f"{match.added} additions beside the products for {bias} of a bias"
        found.append(Found(causes.INITIAL_BIAS, match.added - bias, shown if match.added else "no addition beside the products"))
    return found


def match_products(products: Sequence[Product], done: int, summed: int) -> Match | None:
    """The simplest way of making products that gives the multiplications and additions that were counted; None if there is none.

    The multiplications must fit exactly; additions beyond them too, as a whole number for each result, or else be no more than
    it takes to add up the lanes of a vector for each.
    """
    loose: Match | None = None
    mac, padding = sum(each.mac for each in products), sum(each.padding for each in products)
    for skipped in (True, False) if padding else (False,):
        base = mac - padding if skipped else mac
        for blocks, made in sized(products, padding=not skipped):
            computed = sum(each.products for each in made)
            # A kernel may do more than the products, by a little: nothing else is worth looking at.
            if not 0 <= done - computed <= 2 * sum(each.results for each in made) + sum(max(each.packed) for each in products):
                continue
            if (scaled := _scaled(products, made, done - computed)) is None:
                continue
            added = summed - computed
            if added < 0 or added > _limit(products, made):
                continue
            per_result = _per_result(products, made, added)
            match = Match(not skipped, base, computed, scaled, added, blocks, per_result)
            if per_result is not None or _panels(products, made, added):
                return match
            loose = loose or match
    return loose


def _scaled(products: Sequence[Product], made: Sequence[Rounded], left: int) -> int | None:
    """`left` if so many multiplications scale results or matrices a whole number of times, else None."""
    if not left:
        return 0
    units = [(results.results, one.results) for results, one in zip(made, products, strict=True)]
    for times in every(_SCALINGS, repeat=min(len(products), 2)):
        for padded in (0, 1):
            rest = left - sum(count * unit[padded] for count, unit in zip(times, units, strict=False))
            if rest == 0 or rest in {size for each in products for size in each.packed}:
                return left
    return None


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


def _another_algorithm(products: Sequence[Product], measured: Lanes, estimated: Lanes) -> list[Found]:
    """Winograd's minimal filtering and FFT: at least one and a half times fewer products, for filters larger than one position."""
    needed = sum(each.mac - each.padding for each in products)
    done = measured.fused or measured[Operation.MUL]
    if any(each.kernel == 1 for each in products) or not 0 < 3 * done <= 2 * needed or 8 * done < needed:
        return []
    fewer = f"{needed / done:.2f} times fewer products than the definition has, without padding"
    padding = -2 * sum(each.padding for each in products)
    other = measured.products + measured.sums - 2 * needed - estimated[Operation.ADD]
    found = [Found(causes.PADDING, padding, fewer)] if padding else []
    return [*found, Found(causes.ALGORITHM, other, f"{fewer}; additions transform what goes in and comes out")]


def _beside(measured: Lanes, estimated: Lanes) -> list[Found]:
    """Scalar double precision beside products: how the work is shared out."""
    spare = sum(measured.foreign.values())
    if spare and not estimated.foreign:
        fused = measured.foreign.get(Operation.FMA, 0)
        return [Found(causes.OVERHEAD, spare + fused, "scalar double precision, which nothing in the operator is made of")]
    return []
