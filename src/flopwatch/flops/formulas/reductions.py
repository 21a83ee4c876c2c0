"""Many numbers made one: n numbers that go into each result take n - 1 operations.

`taken` is how many numbers go in altogether, `made` how many come out.
"""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


def steps(taken: int, made: int) -> int:
    """Operations that make so many results of so many numbers: none for those that had nothing to add."""
    return max(taken - made, 0)


def summed(numbers: On, taken: int, made: int) -> Work:
    """Σ x: n - 1 additions each."""
    return work(numbers, add=steps(taken, made))


def mean(numbers: On, taken: int, made: int) -> Work:
    """Σ x / n: n - 1 additions and a division each."""
    return work(numbers, add=steps(taken, made), div=made)


def multiplied(numbers: On, taken: int, made: int) -> Work:
    """Π x: n - 1 products each."""
    return work(numbers, mul=steps(taken, made))


def extreme(numbers: On, taken: int, made: int) -> Work:
    """Maximum or minimum, or where it lies: n - 1 minmax each."""
    return work(numbers, minmax=steps(taken, made))


def variance(numbers: On, taken: int, made: int, *, root: bool = False) -> Work:
    """Σ (x - mean)² / (n - correction) and the mean: the mean, n differences, n squares, their sum and a division; or its root."""
    return work(
        numbers,
        add=2 * steps(taken, made) + taken,
        mul=taken,
        div=2 * made,
        sqrt=made if root else 0,
    )


def logsumexp(numbers: On, taken: int, made: int) -> Work:
    """m + log Σ exp(x - m) with m the maximum."""
    inner = steps(taken, made)
    return work(numbers, minmax=inner, add=taken + inner + made, transcendental=taken + made)


def softmax(numbers: On, taken: int, rows: int) -> Work:
    """exp(x - m)/Σ exp(x - m), m the maximum of the row: n - 1 minmax, n differences, n exponentials, n - 1 additions, n quotients."""
    inner = steps(taken, rows)
    return work(numbers, minmax=inner, add=taken + inner, transcendental=taken, div=taken)


def softmax_backward(numbers: On, taken: int, rows: int) -> Work:
    """r·(g - Σ r·g): n products and their sum, n differences, n products."""
    return work(numbers, mul=2 * taken, add=steps(taken, rows) + taken)


def log_softmax(numbers: On, taken: int, rows: int) -> Work:
    """(x - m) - log Σ exp(x - m): as softmax, but a logarithm for each row and n differences instead of the quotients."""
    inner = steps(taken, rows)
    return work(numbers, minmax=inner, add=2 * taken + inner, transcendental=taken + (rows if taken else 0))


def log_softmax_backward(numbers: On, taken: int, rows: int) -> Work:
    """g - exp(r)·Σ g: a sum, n exponentials, n products and differences."""
    return work(numbers, add=steps(taken, rows), transcendental=taken, fma=taken)
