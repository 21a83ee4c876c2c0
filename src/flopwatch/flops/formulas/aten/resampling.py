"""Up-sampling, grid sampling, affine grids, and the columns of convolutions."""

from __future__ import annotations

from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula, free, resampling, work
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.products import product
from flopwatch.flops.formulas.work import numbers_of

_AXES = {"linear1d": 1, "bilinear2d": 2, "trilinear3d": 3}
# Half the width of each filter, in points.
_SUPPORT = {"bilinear2d": 1.0, "bicubic2d": 2.0, "lanczos2d": 3.0}
_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")

free(
    "copies data only",
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::_upsample_nearest_exact1d",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_nearest_exact3d",
)


@formula(*(f"aten::upsample_{name}" for name in _AXES))
def linear(op: Op) -> Work:
    """(batch, channels, positions …), along all axes of positions."""
    made = result_of(op)
    return resampling.linear(numbers_of(made), made.size, len(made.shape) - 2)


@formula(*(f"aten::upsample_{name}_backward" for name in _AXES))
def linear_backward(op: Op) -> Work:
    """Gradients of `linear`."""
    gradient: Array = op.arguments["grad_output"]
    return resampling.linear_backward(numbers_of(gradient), gradient.size, len(gradient.shape) - 2)


@formula("aten::upsample_bicubic2d")
def cubic(op: Op) -> Work:
    """(batch, channels, height, width)."""
    made = result_of(op)
    return resampling.cubic(numbers_of(made), made.size)


@formula("aten::upsample_bicubic2d_backward")
def cubic_backward(op: Op) -> Work:
    """Gradients of `cubic`."""
    gradient: Array = op.arguments["grad_output"]
    return resampling.cubic_backward(numbers_of(gradient), gradient.size)


@formula(
    *(f"aten::upsample_nearest{axes}d_backward" for axes in (1, 2, 3)),
    *(f"aten::_upsample_nearest_exact{axes}d_backward" for axes in (1, 2, 3)),
)
def nearest_backward(op: Op) -> Work:
    """Gradients of copies."""
    gradient: Array = op.arguments["grad_output"]
    return resampling.nearest_backward(numbers_of(gradient), gradient.size)


@formula(*(f"aten::_upsample_{name}_aa" for name in _SUPPORT))
def antialiased(op: Op) -> Work:
    """(batch, channels, height, width), filtered where it shrinks."""
    given: Array = op.arguments["self"] if "self" in op.arguments else op.arguments["input"]
    before, after = given.shape[2:], result_of(op).shape[2:]
    images = given.shape[0] * given.shape[1]
    return resampling.antialiased(numbers_of(given), images, before, after, _scales(op, before, after), _support(op))


@formula(*(f"aten::_upsample_{name}_aa_backward" for name in _SUPPORT))
def antialiased_backward(op: Op) -> Work:
    """Gradients of `antialiased`."""
    gradient: Array = op.arguments["grad_output"]
    batch, channels, *before = op.arguments["input_size"]
    after = gradient.shape[2:]
    scales = _scales(op, tuple(before), after)
    return resampling.antialiased_backward(
        numbers_of(gradient), batch * channels, tuple(before), after, scales, _support(op)
    )


@formula("aten::grid_sampler_2d", "aten::grid_sampler_3d", "aten::grid_sampler", "aten::_grid_sampler_2d_cpu_fallback")
def grid_sampler(op: Op) -> Work:
    """Images (batch, channels, positions …) sampled at (batch, positions …, axes)."""
    return resampling.grid_sample(*_sampling(op, op.arguments["input"]))


@formula(
    "aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward", "aten::_grid_sampler_2d_cpu_fallback_backward"
)
def grid_sampler_backward(op: Op) -> Work:
    """Gradients to images and grids, those of `output_mask`."""
    image, grid = op.arguments.get("output_mask", (True, True))
    if not (image or grid):
        return Work()
    return resampling.grid_sample_backward(*_sampling(op, op.arguments["input"]), image=image, grid=grid)


@formula("aten::cudnn_grid_sampler")
def cudnn_grid_sampler(op: Op) -> Work:
    """Linear in two axes, zeros outside, corners aligned."""
    return resampling.grid_sample(*_sampling(op, op.arguments["self"]))


@formula("aten::cudnn_grid_sampler_backward")
def cudnn_grid_sampler_backward(op: Op) -> Work:
    """Gradients to images and grids."""
    return resampling.grid_sample_backward(*_sampling(op, op.arguments["self"]))


@formula("aten::affine_grid_generator", "aten::cudnn_affine_grid_generator")
def affine_grid(op: Op) -> Work:
    """Maps (batch, axes, axes + 1) to grids (batch, positions …, axes)."""
    made = result_of(op)
    axes = made.shape[-1]
    return resampling.affine_grid(numbers_of(made), made.size // axes, axes)


@formula("aten::cudnn_affine_grid_generator_backward")
def affine_grid_backward(op: Op) -> Work:
    """Gradients of the maps: the gradient (axes, points) times the grid (points, axes + 1), as its counterpart elsewhere does it."""
    gradient: Array = op.arguments["grad"]
    batch, *positions, axes = gradient.shape
    return product(gradient, axes, prod(positions), axes + 1, batch=batch)


@formula("aten::col2im")
def col2im(op: Op) -> Work:
    """Each number of the columns is added to its place; those that fall on padding too."""
    given: Array = op.arguments["self"]
    return work(given, add=given.size)


@formula("aten::unfold_backward")
def unfold_backward(op: Op) -> Work:
    """Each gradient is added to the place that its window saw."""
    gradient: Array = op.arguments["grad_in"]
    return work(gradient, add=gradient.size)


def _support(op: Op) -> float:
    return _SUPPORT[op.name.removeprefix("aten::_upsample_").partition("_")[0]]


def _scales(op: Op, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[float, ...]:
    """Points of the input for each of the output: as asked for (a factor of the size), else by the sizes."""
    given = op.arguments
    asked: Any = given.get("scale_factors") or (given.get("scales_h"), given.get("scales_w"))
    found = []
    for old, new, factor in zip(before, after, asked, strict=True):
        if given.get("align_corners"):
            found.append((old - 1) / (new - 1) if new > 1 else 0.0)
        else:
            found.append(1 / factor if factor else old / new if new else 0.0)
    return tuple(found)


def _sampling(op: Op, image: Array) -> tuple[Any, int, int, int, str, str, bool]:
    grid: Array = op.arguments["grid"]
    axes = grid.shape[-1]
    return (
        numbers_of(image),
        grid.size // axes if axes else 0,
        image.shape[1],
        axes,
        _MODES[op.arguments.get("interpolation_mode", 0)],
        _PADDINGS[op.arguments.get("padding_mode", 0)],
        bool(op.arguments.get("align_corners", True)),
    )
