"""Grid sampling and affine grids written out as loops over numbers that count, checked against what PyTorch computes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from flopwatch.flops.formulas import resampling
from tests.unit.flops.formulas.counting import Counting, Number, larger, operations, smaller
from tests.unit.flops.formulas.numerics import SINGLE, counted, flop, values, weighted, worth

CHANNELS = 3
A = -0.75  # PyTorch's cubic


def unnormalised(x: Number, size: int, padding: str, corners: bool) -> Number:
    x = (x + 1) * ((size - 1) / 2) if corners else (x + 1) * (size / 2) - 0.5
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        distance = abs(x - low)
        flips = math.floor(float(distance / span))
        rest = distance - seen_product(x, flips, span)
        x = rest + low if flips % 2 == 0 else (span - rest) + low
        if flips % 2 == 0:
            rest + 0.0  # the data decide whether to go back from the high end: both ways are counted alike
    return smaller(larger(x, 0), size - 1)


def seen_product(like: Number, one: float, other: float) -> Number:
    return Number(one, like.seen) * other


def sampled(images: Any, points: Any, mode: str, padding: str, corners: bool) -> Any:
    """Of images (channels, height, width) at points (n, 2), or with one axis more."""
    sizes = images.shape[1:]
    axes = len(sizes)
    made = np.empty((len(images), len(points)), dtype=object)
    for p, point in enumerate(points):
        # The last coordinate of a point is that of the first axis.
        at = [unnormalised(x, size, padding, corners) for x, size in zip(point[::-1], sizes, strict=True)]
        if mode == "nearest":
            for c, image in enumerate(images):
                made[c, p] = pixel(image, [round(float(x)) for x in at])
            continue
        low = [math.floor(float(x)) for x in at]
        sides = [[(base + 1) - x, x - base] for base, x in zip(low, at, strict=True)]
        corners_ = [((), None)]
        for axis in range(axes):
            corners_ = [
                ((*at_corner, side), sides[axis][side] if weight is None else weight * sides[axis][side])
                for at_corner, weight in corners_
                for side in (0, 1)
            ]
        for c, image in enumerate(images):
            read = [pixel(image, [base + s for base, s in zip(low, corner, strict=True)]) for corner, _ in corners_]
            made[c, p] = weighted(read, [weight for _, weight in corners_])
    return made


def pixel(image: Any, at: list[int]) -> Number:
    inside = all(0 <= index < size for index, size in zip(at, image.shape, strict=True))
    return image[tuple(at)] if inside else Number(0.0, image.flat[0].seen)


@pytest.mark.torch
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "sizes"), [("bilinear", (4, 5)), ("nearest", (4, 5)), ("bilinear", (3, 4, 3))])
def test_grid_samples(mode: str, sizes: tuple[int, ...], padding: str, corners: bool) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    torch.manual_seed(0)
    axes = len(sizes)
    x = torch.randn(1, CHANNELS, *sizes, dtype=torch.float64)
    grid = torch.rand(1, *(2,) * axes, axes, dtype=torch.float64) * 2.4 - 1.2
    seen = Counting()
    made = sampled(counted(seen, x[0].numpy()), counted(seen, grid.reshape(-1, axes).numpy()), mode, padding, corners)
    sample = torch.nn.functional.grid_sample
    options: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    assert np.allclose(values(made), sample(x, grid, **options).reshape(CHANNELS, -1).numpy())
    (op,) = calls(sample, x, grid, **options)
    assert operations(worth(op.name, *op.outputs, **op.arguments)) == +seen.operations


def test_cubic_weights_of_a_position_that_is_data() -> None:
    seen = Counting()
    x = seen.number(1.25)
    t = x - 1.0
    one, two = 1 - t, t + 1
    cubics = [far_(two), near_(t), near_(one), far_(one + 1)]
    assert np.allclose([float(each) for each in cubics], [far_(1.25), near_(0.25), near_(0.75), far_(1.75)])
    assert operations(resampling.cubic_weights(SINGLE, 1)) == +seen.operations


def near_(t: Any) -> Any:
    return (t * (A + 2) - (A + 3)) * t * t + 1


def far_(t: Any) -> Any:
    return ((t * A - 5 * A) * t + 8 * A) * t - 4 * A


def test_gradients_of_cubic_samples() -> None:
    """One point, the distances of its coordinates known: slopes of the weights, then sums as in the forward direction."""
    seen = Counting()
    images, gradients = seen.numbers(CHANNELS, 4, 4), seen.numbers(CHANNELS)
    distances = [[x + 1, x, 1 - x, 2 - x] for x in (0.25, 0.5)]
    weights = [seen.numbers(4), seen.numbers(4)]
    for axis in (0, 1):
        far_low, low, high, far_high = (seen.number(each) for each in distances[axis])
        slopes = [slope_far(far_low), slope_near(low), -slope_near(high), -slope_far(far_high)]
        if axis == 0:
            plain = [far_(each + 1e-6) - far_(each) for each in distances[0][:1]]
            assert np.isclose(float(slopes[0]), plain[0] * 1e6, atol=1e-4)
        moved = seen.number(0.0)
        for image, gradient in zip(images, gradients, strict=True):
            rows = np.moveaxis(image, axis, 0)
            other = weights[1 - axis]
            moved = moved + gradient * weighted([weighted(list(row), list(other)) for row in rows], slopes)
        moved * 2.0
    arguments = (SINGLE, 1, CHANNELS, 2, "cubic", "zeros", True)
    nothing = resampling.grid_sample_backward(*arguments, image=False, grid=False)
    grid = resampling.grid_sample_backward(*arguments, image=False)
    assert operations(grid) - operations(nothing) == +seen.operations
    assert flop(resampling.grid_sample_backward(*arguments)) - flop(grid) == CHANNELS * (4 + 2 * 16)


def slope_near(t: Number) -> Number:
    return (t * (3 * (A + 2)) - 2 * (A + 3)) * t


def slope_far(t: Number) -> Number:
    return (t * (3 * A) - 10 * A) * t + 8 * A


@pytest.mark.parametrize("axes", [2, 3])
def test_gradients_of_samples(axes: int) -> None:
    """One point, its position known; gradients to the image, and to the position by differences of neighbours."""
    seen = Counting()
    images, gradients = seen.numbers(CHANNELS, *(2,) * axes), seen.numbers(CHANNELS)
    sides = seen.numbers(axes, 2)
    slopes = [seen.number(0.0) for _ in range(axes)]
    for axis in range(axes):
        others = [a for a in range(axes) if a != axis]
        weights = {}
        for corner in itertools.product((0, 1), repeat=axes - 1):
            parts = [sides[a][side] for a, side in zip(others, corner, strict=True)]
            weights[corner] = parts[0] if axes == 2 else parts[0] * parts[1]
        for image, gradient in zip(images, gradients, strict=True):
            moved = np.moveaxis(image, axis, 0)
            differences = [moved[1][corner] - moved[0][corner] for corner in weights]
            slopes[axis] = slopes[axis] + gradient * weighted(differences, list(weights.values()))
        slopes[axis] = slopes[axis] * 2.0
    base = resampling.grid_sample_backward(SINGLE, 1, CHANNELS, axes, "linear", "zeros", True, image=False, grid=False)
    grid = resampling.grid_sample_backward(SINGLE, 1, CHANNELS, axes, "linear", "zeros", True, image=False)
    assert operations(grid) - operations(base) == +seen.operations
    both = resampling.grid_sample_backward(SINGLE, 1, CHANNELS, axes, "linear", "zeros", True)
    assert flop(both) - flop(grid) == 2 * 2**axes * CHANNELS


@pytest.mark.torch
@pytest.mark.parametrize("axes", [2, 3])
def test_affine_grids(axes: int) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    theta = torch.randn(1, axes, axes + 1, dtype=torch.float64)
    sizes = (2, 3, 4)[:axes]
    seen = Counting()
    maps = counted(seen, theta[0].numpy())
    expected = torch.nn.functional.affine_grid(theta, [1, 1, *sizes], align_corners=True)[0].numpy()
    for index in np.ndindex(*sizes):
        base = [2 * i / (size - 1) - 1 for i, size in zip(index, sizes, strict=True)][::-1]
        for row, value in zip(maps, expected[index], strict=True):
            moved = row[-1]
            for factor, x in zip(row, base, strict=False):
                moved = moved + factor * x
            assert np.isclose(float(moved), value)
    (op,) = calls(torch.nn.functional.affine_grid, theta, [1, 1, *sizes], align_corners=True)
    assert operations(worth(op.name, *op.outputs, **op.arguments)) == +seen.operations
