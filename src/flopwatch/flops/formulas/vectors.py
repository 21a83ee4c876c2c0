"""Norms of vectors."""

from __future__ import annotations

from math import isinf

from flopwatch.flops.formulas.work import Numbers, Work, work


def norm(numbers: Numbers, count: int, n: int, order: float, result: Numbers, root: bool = True) -> Work:
    """`count` norms of n numbers each, worked out in the (real) numbers of `result`; without `root`, the sums below it.

    Order 2: n squares, summed (twice n for complex numbers), and a root. Order 1: n - 1 sums; 0: as many, of what is not zero;
    infinity: n - 1 minmax. Any other: n powers, their sum, and a power again. The modulus of a complex number is a root of two
    squares.
    """
    if not n:
        return Work()
    real = Numbers(result.dtype)
    if order == 2:
        terms = 2 * n if numbers.complex else n
        return work(real, mul=count, fma=(terms - 1) * count, sqrt=count if root else 0)
    found = work(real, mul=n * count, fma=n * count, sqrt=n * count) if numbers.complex and order else Work()
    if isinf(order):
        return found + work(real, minmax=(n - 1) * count)
    if order in (0, 1):
        return found + work(real, add=(n - 1) * count)
    return found + work(real, add=(n - 1) * count, transcendental=(n + root) * count)
