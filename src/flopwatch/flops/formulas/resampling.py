"""Resampling of images and signals: interpolation between grid points, forward and backward.

Where the positions depend on the shapes alone (up-sampling), they and the weights made of them are constants of the operator,
made once, and not counted; where they are data (grid sampling), they are.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod

from flopwatch.flops.formulas.work import Numbers, Work, total, work

# Points of a cubic convolution along one axis.
CUBIC = 4


def linear(numbers: Numbers, elements: int, axes: int) -> Work:
    """Linear interpolation along `axes` axes, one within the other: 2^axes - 1 times w₀ a + w₁ b for each element of the result.

    1, 3 and 7 such pairs of products: 3, 9 and 21 FLOP for linear, bilinear and trilinear.
    """
    pairs = (2**axes - 1) * elements
    return work(numbers, mul=pairs, fma=pairs)


def linear_backward(numbers: Numbers, elements: int, axes: int) -> Work:
    """Each gradient, times the weights of one axis after the other, is added to the 2^axes points that it came from.

    Products 2 + … + 2^axes, the last ones with an addition.
    """
    return work(numbers, mul=(2**axes - 2) * elements, fma=2**axes * elements)


def cubic(numbers: Numbers, elements: int) -> Work:
    """Cubic convolution of 4 × 4 points for each element of the result: 4 rows and the column of their values, 5 · 7 FLOP.

    (Keys, Cubic convolution interpolation for digital image processing, 1981.)
    """
    return work(numbers, mul=(CUBIC + 1) * elements, fma=(CUBIC + 1) * (CUBIC - 1) * elements)


def cubic_backward(numbers: Numbers, elements: int) -> Work:
    """Each gradient times 4 weights, and each of these times 4 more and added to the point that it came from."""
    return work(numbers, mul=CUBIC * elements, fma=CUBIC * CUBIC * elements)


def nearest_backward(numbers: Numbers, elements: int) -> Work:
    """Each gradient is added to the point that it was copied from."""
    return work(numbers, add=elements)


def antialiased(
    numbers: Numbers,
    images: int,
    before: tuple[int, ...],
    after: tuple[int, ...],
    scales: tuple[float, ...],
    support: float,
) -> Work:
    """One axis after the other, the last one first: each result is the weighted sum of the points under a stretched filter.

    `scales` is input points for each output point along each axis, `support` the half width of the filter in points: 1 for
    linear, 2 for cubic, 3 for Lanczos. A sum of t points is t products and t - 1 additions; points that happen to weigh zero
    are counted.
    """
    parts = []
    for lines, taps, outputs in _passes(images, before, after, scales, support):
        parts.append(work(numbers, mul=lines * min(taps, outputs), fma=lines * max(taps - outputs, 0)))
    return total(parts)


def antialiased_backward(
    numbers: Numbers,
    images: int,
    before: tuple[int, ...],
    after: tuple[int, ...],
    scales: tuple[float, ...],
    support: float,
) -> Work:
    """The transposed sums: each gradient times each weight is added to a point, along one axis after the other."""
    fma = sum(lines * taps for lines, taps, _ in _passes(images, before, after, scales, support))
    return work(numbers, fma=fma)


def _passes(
    images: int, before: tuple[int, ...], after: tuple[int, ...], scales: tuple[float, ...], support: float
) -> list[tuple[int, int, int]]:
    """For each axis how many lines there are along it, the points that all sums along a line take, and the sums."""
    found = []
    shape = list(before)
    for axis in reversed(range(len(before))):
        shape[axis] = after[axis]
        lines = images * prod(shape[:axis]) * prod(shape[axis + 1 :])
        found.append((lines, taps(before[axis], after[axis], scales[axis], support), after[axis]))
    return found


@lru_cache(maxsize=1024)
def taps(before: int, after: int, scale: float, support: float) -> int:
    """Points under the filter, over all outputs of a line: from centre - reach to centre + reach, rounded, inside the line.

    Centre is scale · (i + 1/2); reach is the support, stretched by the scale where the line shrinks (Pillow's way).
    """
    reach = support * max(scale, 1.0)
    found = 0
    for i in range(after):
        centre = scale * (i + 0.5)
        first = max(int(centre - reach + 0.5), 0)
        found += max(min(int(centre + reach + 0.5), before) - first, 0)
    return found


def grid_sample(
    numbers: Numbers, points: int, channels: int, axes: int, mode: str, padding: str, corners: bool
) -> Work:
    """An image sampled at `points` given positions, over all images of the batch: `channels` values at each.

    Positions, see `positions`. "nearest": copies. "linear": of each coordinate the distances to both neighbours (2 sums), the
    2^axes corner weights as products of one axis after the other, and for each channel 2^axes products, summed. "cubic" (two
    axes): four weights for each coordinate, see `cubic_weights`, and for each channel 4 × 4 points as in `cubic`.
    """
    where = positions(numbers, points * axes, padding if mode != "cubic" else "zeros", corners)
    if mode == "nearest":
        return where
    if mode == "cubic":
        return where + cubic_weights(numbers, points * axes) + cubic(numbers, points * channels)
    corners_ = 2**axes
    weights = work(numbers, add=2 * axes * points, mul=_corner_products(axes) * points)
    return where + weights + work(numbers, mul=points * channels, fma=(corners_ - 1) * points * channels)


def grid_sample_backward(
    numbers: Numbers,
    points: int,
    channels: int,
    axes: int,
    mode: str,
    padding: str,
    corners: bool,
    image: bool = True,
    grid: bool = True,
) -> Work:
    """Gradients of `grid_sample` to the image and to the positions.

    Positions and weights are computed again. Image: each gradient, times each weight, is added to a point (nearest: is added).
    Positions, "linear": for each channel and coordinate 2^(axes - 1) differences of neighbours, summed with the weights that the
    other axes give them (products, with three axes), times the gradient and added up over the channels. "cubic": slopes of the four
    weights, (3(a + 2) t - 2(a + 3)) t and (3a t - 10a) t + 8a, then as in `cubic` for each coordinate, times the gradient and added
    up. Each coordinate is scaled back to the grid by a product; what reflection turned round is free.
    """
    parts = [positions(numbers, points * axes, padding if mode != "cubic" else "zeros", corners)]
    values = points * channels
    half = 2 ** (axes - 1)
    if mode == "nearest":
        if image:
            parts.append(work(numbers, add=values))
        return total(parts)
    if mode == "cubic":
        parts.append(cubic_weights(numbers, points * axes))
        if image:
            parts.append(cubic_backward(numbers, values))
        if grid:
            slopes = work(numbers, mul=2 * axes * points, fma=6 * axes * points)
            parts += [slopes, axes * cubic(numbers, values), work(numbers, fma=axes * values, mul=axes * points)]
        return total(parts)
    parts.append(work(numbers, add=2 * axes * points, mul=_corner_products(axes) * points))
    if image:
        parts.append(work(numbers, fma=2**axes * values))
    if grid:
        slopes = work(numbers, add=half * axes * values, mul=axes * values, fma=half * axes * values)
        between = half * axes if axes == 3 else 0
        parts += [slopes, work(numbers, mul=(between + axes) * points)]
    return total(parts)


def positions(numbers: Numbers, coordinates: int, padding: str, corners: bool) -> Work:
    """Coordinates from -1 … 1 to points of the image.

    With corners ((x + 1) · (n - 1)/2): a sum and a product. Without ((x + 1) · n/2 - 1/2): a sum more. Border padding cuts off on
    both sides (2 minmax). Reflection: distance to the low end, by the span (a quotient), what is left over whole spans (a product
    and a difference), back to the low end or from the high one (2 sums), cut off on both sides.
    """
    add, fma = (1, 0) if corners else (1, 1)
    mul = 1 if corners else 0
    if padding == "border":
        return work(
            numbers, add=add * coordinates, mul=mul * coordinates, fma=fma * coordinates, minmax=2 * coordinates
        )
    if padding == "reflection":
        return work(
            numbers,
            add=(add + 3) * coordinates,
            mul=mul * coordinates,
            fma=(fma + 1) * coordinates,
            div=coordinates,
            minmax=2 * coordinates,
        )
    return work(numbers, add=add * coordinates, mul=mul * coordinates, fma=fma * coordinates)


def cubic_weights(numbers: Numbers, coordinates: int) -> Work:
    """The four weights of Keys' cubic convolution at a coordinate's distances 1 + t, t, 1 - t and 2 - t: t and these are 4 sums.

    Near, ((a + 2) t - (a + 3)) t² + 1: two multiply-adds and a product. Far, ((a t - 5a) t + 8a) t - 4a: three multiply-adds.
    """
    return work(numbers, add=4 * coordinates, mul=2 * coordinates, fma=10 * coordinates)


def affine_grid(numbers: Numbers, points: int, axes: int) -> Work:
    """Points of a regular grid moved by an affine map: axes coordinates, each of `axes` products added to a shift."""
    return work(numbers, fma=points * axes * axes)


def _corner_products(axes: int) -> int:
    # Weights of 2, 4, 8 corners: each set is made of the one before, by one product a corner.
    return sum(2**later for _, later in pairwise(range(1, axes + 1)))
