"""Resampling written out as loops over numbers that count, checked against what PyTorch computes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, estimate, resampling
from flopwatch.flops.formulas.work import total
from tests.unit.flops.formulas.counting import Counting, Number, operations
from tests.unit.flops.formulas.numerics import SINGLE, counted, flop, values, weighted, worth

BATCH, CHANNELS = 2, 3
A = -0.75  # PyTorch's cubic


def place(index: int, before: int, after: int) -> float:
    """The point of the input that a point of the output lies on, corners not aligned; a plain number."""
    return (index + 0.5) * before / after - 0.5


def neighbours(at: float, size: int) -> tuple[int, int, float]:
    at = max(at, 0.0)
    low = min(int(at), size - 1)
    return low, min(low + 1, size - 1), at - low


def interpolated(image: Any, at: tuple[float, ...]) -> Number:
    """Along the last axis within the one before: of plain positions."""
    low, high, t = neighbours(at[0], len(image))
    if len(at) == 1:
        return image[low] * (1 - t) + image[high] * t
    return interpolated(image[low], at[1:]) * (1 - t) + interpolated(image[high], at[1:]) * t


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [("linear", (4,), (7,)), ("bilinear", (3, 4), (5, 8)), ("trilinear", (2, 3, 2), (4, 4, 3))],
)
def test_linear(mode: str, before: tuple[int, ...], after: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    x = torch.randn(BATCH, CHANNELS, *before, dtype=torch.float64)
    seen = Counting()
    made = np.empty((BATCH, CHANNELS, *after), dtype=object)
    for n, c in itertools.product(range(BATCH), range(CHANNELS)):
        image = counted(seen, x[n, c].numpy())
        for index in np.ndindex(*after):
            made[(n, c, *index)] = interpolated(image, tuple(map(place, index, before, after)))
    resize = torch.nn.functional.interpolate
    assert np.allclose(values(made), resize(x, after, mode=mode).numpy())
    (op,) = calls(resize, x, after, mode=mode)
    assert operations(worth(op.name, *op.outputs, **op.arguments)) == +seen.operations
    axes = len(before)
    assert flop(resampling.linear(SINGLE, 1, axes)) == 3 * (2**axes - 1)


def near(t: float) -> float:
    return ((A + 2) * t - (A + 3)) * t * t + 1


def far(t: float) -> float:
    return ((A * t - 5 * A) * t + 8 * A) * t - 4 * A


@pytest.mark.torch
def test_cubic() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    before, after = (4, 5), (6, 7)
    x = torch.randn(1, 1, *before, dtype=torch.float64)
    seen = Counting()
    image = counted(seen, x[0, 0].numpy())
    made = np.empty(after, dtype=object)
    for i, j in np.ndindex(*after):
        y, x0 = place(i, before[0], after[0]), place(j, before[1], after[1])
        weights = [[far(t + 1), near(t), near(1 - t), far(2 - t)] for t in (y - math.floor(y), x0 - math.floor(x0))]
        rows = []
        for k in range(4):
            row = image[min(max(math.floor(y) - 1 + k, 0), before[0] - 1)]
            points = [row[min(max(math.floor(x0) - 1 + each, 0), before[1] - 1)] for each in range(4)]
            rows.append(weighted(points, weights[1]))
        made[i, j] = weighted(rows, weights[0])
    resize = torch.nn.functional.interpolate
    assert np.allclose(values(made), resize(x, after, mode="bicubic")[0, 0].numpy())
    (op,) = calls(resize, x, after, mode="bicubic")
    assert operations(worth(op.name, *op.outputs, **op.arguments)) == +seen.operations


def under_filter(before: int, after: int, support: int) -> list[float]:
    """The weights that all outputs of a line give, those of zero too: of a triangle (1) or a cubic with a = -1/2 (2)."""
    scale = before / after
    stretched = max(scale, 1.0)
    found = []
    for i in range(after):
        centre = scale * (i + 0.5)
        for k in range(before):
            distance = abs(k + 0.5 - centre) / stretched
            if int(centre - support * stretched + 0.5) <= k < int(centre + support * stretched + 0.5):
                weight = max(1 - distance, 0.0) if support == 1 else cubic_half(distance)
                found.append(weight)
    return found


def cubic_half(t: float) -> float:
    if t < 1:
        return (1.5 * t - 2.5) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * -0.5 if t < 2 else 0.0


@pytest.mark.torch
@pytest.mark.parametrize(("mode", "support"), [("bilinear", 1), ("bicubic", 2)])
@pytest.mark.parametrize("after", [(3, 4), (12, 9), (7, 3)])
def test_a_filter_takes_the_points_that_pytorch_takes(mode: str, support: int, after: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    before = (7, 8)
    x = torch.randn(BATCH, CHANNELS, *before, dtype=torch.float64, requires_grad=True)
    resize = torch.nn.functional.interpolate
    (op,) = calls(resize, x, after, mode=mode, antialias=True)

    def counted_points(axis: int) -> int:
        """Points with a weight for each output along one axis, as a gradient shows them; edges of the filter weigh zero."""
        line = torch.ones(1, 1, *(before[a] if a == axis else 1 for a in (0, 1)), dtype=torch.float64)
        line.requires_grad_()
        out = resize(line, tuple(after[a] if a == axis else 1 for a in (0, 1)), mode=mode, antialias=True).flatten()
        return sum(int((torch.autograd.grad(each, line, retain_graph=True)[0].abs() > 1e-9).sum()) for each in out)

    taps = [under_filter(before[a], after[a], support) for a in (0, 1)]
    for axis in (0, 1):
        assert sum(abs(weight) > 1e-9 for weight in taps[axis]) == counted_points(axis)
    images = BATCH * CHANNELS
    lines = images * before[0], images * after[1]
    products = lines[0] * len(taps[1]) + lines[1] * len(taps[0])
    sums = products - lines[0] * after[1] - lines[1] * after[0]
    assert flop(worth(op.name, *op.outputs, **op.arguments)) == products + sums
    gradient = Array((BATCH, CHANNELS, *after))
    arguments = {"output_size": list(after), "input_size": list(x.shape), "align_corners": False}
    back = worth(f"{op.name}_backward", Array(tuple(x.shape)), grad_output=gradient, **arguments)
    assert flop(back) == 2 * products


def test_gradients_of_linear_interpolation() -> None:
    for axes in (1, 2, 3):
        seen = Counting()
        image, (gradient,) = seen.numbers(*(2,) * axes), seen.numbers(1)
        weights = [(0.25, 0.75)] * axes
        spread(image, gradient, weights)
        assert operations(resampling.linear_backward(SINGLE, 1, axes)) == +seen.operations


def spread(image: Any, gradient: Number, weights: list[tuple[float, float]]) -> None:
    for side in (0, 1):
        share = gradient * weights[0][side]
        if len(weights) == 1:
            image[side] = image[side] + share
        else:
            spread(image[side], share, weights[1:])


def test_gradients_of_cubic_interpolation() -> None:
    seen = Counting()
    image, (gradient,) = seen.numbers(4, 4), seen.numbers(1)
    for row in image:
        share = gradient * 0.25
        for i in range(4):
            row[i] = row[i] + share * 0.25
    assert operations(resampling.cubic_backward(SINGLE, 1)) == +seen.operations


@pytest.mark.torch
def test_backward_of_everything_is_known() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    functional = torch.nn.functional
    image = torch.randn(1, 2, 4, 4, requires_grad=True)
    grid = torch.rand(1, 3, 3, 2, requires_grad=True)
    theta = torch.randn(1, 2, 3, requires_grad=True)
    for made, known in (
        (functional.interpolate(image, scale_factor=2), 2 * 8 * 8),
        (functional.interpolate(image, scale_factor=2, mode="bilinear"), 2 * 8 * 8 * (2 + 2 * 4)),
        (functional.interpolate(image, scale_factor=2, mode="bicubic"), 2 * 8 * 8 * (4 + 2 * 16)),
        (functional.fold(functional.unfold(image, 3), (4, 4), 3), 2 * 9 * 4),
        (image.unfold(2, 3, 1), 2 * 2 * 4 * 3),
        (functional.grid_sample(image, grid, mode="nearest", align_corners=True), 9 * 2 * 2 + 9 * 2),
        (functional.affine_grid(theta, [1, 1, 3, 3], align_corners=True), 2 * 3 * 9 * 2),
    ):
        ops = calls(made.backward, torch.ones_like(made))
        found = total(each for op in ops if isinstance(each := estimate(op), Work))
        assert flop(found) == known, [op.name for op in ops]
        image.grad = grid.grad = theta.grad = None


def test_copies_are_free() -> None:
    image = Array((BATCH, CHANNELS, 4, 4))
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d", "im2col", "pixel_shuffle", "unfold"):
        assert isinstance(estimate(Op(f"aten::{name}", {"self": image}, (image,))), Free)


def test_no_pixels_take_nothing() -> None:
    empty = Array((0, CHANNELS, 4, 4))
    assert worth("aten::upsample_bilinear2d", empty, self=empty).tally == {}
    assert worth("aten::_upsample_bilinear2d_aa", empty, self=empty, align_corners=False).tally == {}
    none = Array((0, 4, 4, 2))
    assert worth("aten::grid_sampler_2d", empty, input=empty, grid=none).tally == {}
    assert worth("aten::cudnn_affine_grid_generator_backward", None, grad=none).tally == {}


def test_kernels_of_one_maker_cost_what_those_of_all_do() -> None:
    image, grid = Array((BATCH, CHANNELS, 4, 4)), Array((BATCH, 5, 5, 2))
    made = Array((BATCH, CHANNELS, 5, 5))
    own = worth("aten::cudnn_grid_sampler", made, self=image, grid=grid)
    options: dict[str, Any] = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": True}
    assert own == worth("aten::grid_sampler_2d", made, input=image, grid=grid, **options)
    # Maps of 2 × 3 numbers, each the sum over 5 · 5 points.
    assert worth("aten::cudnn_affine_grid_generator_backward", None, grad=grid).mac == BATCH * 2 * 3 * 5 * 5
