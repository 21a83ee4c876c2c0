"""Distances between vectors, by their definition, however an implementation expands it."""

from __future__ import annotations

from math import inf

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


def distances(numbers: Numbers | Array, pairs: int, width: int, power: float) -> Work:
    """(Σ |x - y|^p)^(1/p) of so many pairs of vectors of `width` numbers: no multiply-accumulates, whatever the kernel.

    p = 2: width subtractions and squares, width - 1 additions, one root. p = 1: without squares and root. p = inf: the
    greatest of the differences. p = 0: how many differ. Else a power for each number, and one for the root.
    """
    each, sums = pairs * width, pairs * max(0, width - 1)
    if not width:
        return Work()
    if power == 0:
        return work(numbers, add=sums)
    if power == inf:
        return work(numbers, add=each, minmax=sums)
    if power == 1:
        return work(numbers, add=each + sums)
    if power == 2:
        return work(numbers, add=each + sums, mul=each, sqrt=pairs)
    return work(numbers, add=each + sums, transcendental=each + pairs)


def distances_backward(numbers: Numbers | Array, pairs: int, sums: int, width: int, power: float) -> Work:
    """The gradient by one side of the distances, each of `sums` vectors of which gathers what its pairs give.

    p = 2: gradient / distance for each pair, times the difference. p = 1 and inf: the gradient with the sign of the difference
    (or nothing, where it is not the greatest). Else difference · |difference|^(p - 2) · gradient / distance^(p - 1).
    """
    each = pairs * width
    gathered = max(0, each - sums * width)
    if not each or power == 0:
        return Work()
    if power in (1, inf):
        return work(numbers, add=each + gathered)
    if power == 2:
        return work(numbers, add=each + gathered, mul=each, div=pairs)
    return work(numbers, add=each + gathered, mul=2 * each, div=pairs, transcendental=each + pairs)
