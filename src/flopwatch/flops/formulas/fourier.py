"""Fast Fourier transforms: the operations of the textbook algorithms, by length.

Factors that depend on nothing but the length (roots of unity, the chirp and its transform) are made once and not counted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from flopwatch.flops.formulas.work import Numbers, Work, total, work


class Butterflies(NamedTuple):
    """What one transform needs: complex products, and real additions, products and multiply-adds beside them."""

    products: int = 0
    add: int = 0
    mul: int = 0
    fma: int = 0

    @property
    def flop(self) -> int:
        """FLOP, a complex product being six."""
        return 6 * self.products + self.add + self.mul + 2 * self.fma

    def times(self, count: int) -> Butterflies:
        """The same, `count` times."""
        return Butterflies(count * self.products, count * self.add, count * self.mul, count * self.fma)

    def plus(self, other: Butterflies) -> Butterflies:
        """Both together."""
        return Butterflies(
            self.products + other.products, self.add + other.add, self.mul + other.mul, self.fma + other.fma
        )

    @property
    def half(self) -> Butterflies:
        """Half of an even number of additions, products and multiply-adds; half a complex product is two products and a sum."""
        odd = self.products % 2
        return Butterflies(self.products // 2, self.add // 2 + odd, self.mul // 2 + 2 * odd, self.fma // 2)

    def work(self, numbers: Numbers) -> Work:
        """As work on numbers of the datatype of `numbers`."""
        real = work(Numbers(numbers.dtype), add=self.add, mul=self.mul, fma=self.fma)
        if not self.products:
            return real
        return total((work(Numbers(numbers.dtype, True), mul=self.products), real))


def transforms(numbers: Numbers, length: int, count: int) -> Work:
    """`count` complex transforms of one length, see `complex_butterflies`."""
    return complex_butterflies(length, count).work(numbers)


def real_transforms(numbers: Numbers, length: int, count: int) -> Work:
    """`count` transforms of real numbers, or back to them, see `real_butterflies`."""
    return real_butterflies(length, count).work(numbers)


def complex_butterflies(length: int, count: int) -> Butterflies:
    """`count` complex transforms of one length.

    A power of two: radix 2, log₂N stages of N/2 butterflies, each a complex product and two complex sums, products with 1
    included: 5 N log₂N FLOP (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.4; also what benchFFT
    divides times by). Other lengths: see `of_length`.
    """
    return of_length(length).times(count)


def real_butterflies(length: int, count: int) -> Butterflies:
    """`count` transforms between real numbers and the half of their spectrum that is not a mirror image of the other.

    Half of the complex transform, since of each pair of mirrored butterflies one is done: 5/2 N log₂N FLOP for a power of two
    (as in benchFFT; Sorensen et al., Real-valued fast Fourier transform algorithms, 1987).
    """
    return of_length(length).times(count).half


@lru_cache(maxsize=1024)
def of_length(length: int) -> Butterflies:
    """One complex transform of any length: mixed radix, or Bluestein's algorithm where that takes fewer FLOP.

    Bluestein (A linear filtering approach, 1970): N products with a chirp, a convolution with another chirp by two transforms
    of the power of two M ≥ 2N - 1 and M products, and N products again. It wins for large prime factors.
    """
    mixed = mixed_radix(length)
    if length < 3:
        return mixed
    padded = 1 << (2 * length - 2).bit_length()
    bluestein = mixed_radix(padded).times(2).plus(Butterflies(products=padded + 2 * length))
    return min(mixed, bluestein, key=lambda each: each.flop)


def mixed_radix(length: int) -> Butterflies:
    """One complex transform by the prime factors of its length (Cooley and Tukey, 1965).

    Each factor p makes a stage of N/p butterflies; a butterfly is p - 1 products with roots of unity and a transform of p
    numbers. For 2 that is two complex sums; for an odd p, with h = (p - 1)/2 pairs of mirrored inputs: 2h sums and
    differences, h to add up output 0, and for each pair of outputs h products of the sums with cosines (added to input 0),
    h of the differences with sines, and two complex sums: 10h additions, 2h products, 4h² - 2h multiply-adds.
    """
    needed = Butterflies()
    for p in prime_factors(length):
        h = (p - 1) // 2
        small = Butterflies(add=4) if p == 2 else Butterflies(add=10 * h, mul=2 * h, fma=4 * h * h - 2 * h)
        needed = needed.plus(small.plus(Butterflies(products=p - 1)).times(length // p))
    return needed


def prime_factors(number: int) -> list[int]:
    """The prime factors of a number, each as often as it divides it; none for 0 and 1."""
    factors = []
    p = 2
    while p * p <= number:
        while number % p == 0:
            factors.append(p)
            number //= p
        p += 1
    return [*factors, number] if number > 1 else factors
