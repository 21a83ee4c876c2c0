"""Sums, products and maxima along the way: scans, scatters into an array, segments, bags and histograms.

Where things are added to an array by index, each costs one addition, also the first to arrive at a place that holds zero.
Where a known number of groups is made of a known number of things, n things in one group take n - 1 operations, and each group
counts as having one at least: which ones are empty depends on the data.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def scan(numbers: Numbers, lines: int, length: int, how: str) -> Work:
    """The results of the first 1, 2, … n numbers of each line, n - 1 steps: "sum", "prod", "max" (or least), "logsumexp".

    A step of the last is log(eˣ + eʸ) = max + log1p(e^-|x - y|): one minmax, two sums, two function values.
    """
    steps = lines * max(length - 1, 0)
    if how == "logsumexp":
        return work(numbers, add=2 * steps, minmax=steps, transcendental=2 * steps)
    return _joined(numbers, steps, how)


def scattered(numbers: Numbers, elements: int, how: str, targets: int = 0, scaled: bool = False) -> Work:
    """`elements` numbers, each joined to one place of an array: "sum", "mean", "prod", "max" (or least).

    A mean is a sum and one quotient for each of the `targets`. `scaled`: each number by a factor first.
    """
    joined = _joined(numbers, elements, how)
    if how == "mean":
        joined += work(numbers, div=targets)
    return joined + work(numbers, mul=elements) if scaled else joined


def grouped(
    numbers: Numbers, things: int, groups: int, inner: int, how: str, weighted: bool = False, initial: bool = False
) -> Work:
    """`things` rows of `inner` numbers joined to `groups` rows; `weighted`: each row by a factor; `initial`: with a first value."""
    joined = max(things if initial else things - groups, 0) * inner
    found = _joined(numbers, joined, how)
    if how == "mean":
        found += work(numbers, div=groups * inner)
    return found + work(numbers, mul=things * inner) if weighted else found


def histogram(numbers: Numbers, elements: int, bins: int, *, even: bool, ranged: bool, density: bool = False) -> Work:
    """How many (or how much weight) of `elements` numbers fall into each bin: one addition each.

    Even bins: a number's place is (x - low) times bins over span, a difference and a product; other bins are searched, which only
    compares. Without a given range, the least and the largest of all. Density: the sum, and each bin by sum and width.
    """
    places = elements if even else 0
    limits = 0 if ranged else 2 * max(elements - 1, 0)
    found = work(numbers, add=elements + places, mul=places, minmax=limits, div=1 if even else 0)
    if density:
        found += work(numbers, add=max(bins - 1, 0) + (0 if even else bins), mul=bins, div=bins)
    return found


def _joined(numbers: Numbers, count: int, how: str) -> Work:
    if how in ("sum", "mean"):
        return work(numbers, add=count)
    if how == "prod":
        return work(numbers, mul=count)
    if how == "max":
        return work(numbers, minmax=count)
    raise ValueError(f"how does {how!r} join numbers?")
