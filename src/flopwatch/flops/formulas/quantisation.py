"""Numbers to integers with a scale, and back.

What is done to integers one by one (the zero point, rounding, the limits of the integer) is free; what is left is a product with
the scale or its reciprocal.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def quantised(numbers: Numbers, elements: int, scales: int = 1) -> Work:
    """q = round(x / s) + z: each number by the reciprocal of its scale, and one quotient for each scale."""
    return work(numbers, mul=elements, div=scales)


def dequantised(numbers: Numbers, elements: int) -> Work:
    """x = s (q - z): one product each."""
    return work(numbers, mul=elements)


def parameters(numbers: Numbers, elements: int, channels: int = 1, *, moving: bool = False) -> Work:
    """Scale and zero point of `channels` groups of `elements` numbers in all, from their least and largest.

    2 (n - 1) minmax; both at least to zero (2); scale (max - min) / levels: a difference and a quotient; zero point
    round(q_min - min / s): a quotient and a difference. Moving averages of least and largest: m + c (x - m) each.
    """
    minmax = 2 * max(elements - channels, 0) + 2 * channels
    add, mul = (6, 2) if moving else (2, 0)
    return work(numbers, minmax=minmax, add=add * channels, mul=mul * channels, div=2 * channels)


def fake_quantised(numbers: Numbers, elements: int, scales: int = 1) -> Work:
    """s (clamp(round(x / s) + z) - z), all of it in floating point: two products, two sums, two minmax; a quotient for each scale."""
    return work(numbers, mul=2 * elements, add=2 * elements, minmax=2 * elements, div=scales)


def fake_quantised_backward(numbers: Numbers, elements: int, scales: int = 1) -> Work:
    """Gradients to x, scale and zero point where these are learnt (Esser et al., Learned Step Size Quantization, 2019).

    q = round(x / s) + z again (a product, a sum). x: the gradient inside the limits, zero outside, free. Scale: g (q̂ - z - x / s)
    inside, g (q_limit - z) outside: counted as inside, two sums, a product, added up; zero point: -s g, a product, added up. Both
    sums by the gradient factor.
    """
    rest = max(elements - scales, 0)
    return work(numbers, mul=3 * elements + 2 * scales, add=3 * elements + 2 * rest, div=scales)
