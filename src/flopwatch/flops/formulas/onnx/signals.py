"""Fourier transforms, windows, resampling, regions of images, values put together at places."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import accumulation, regions, resampling
from flopwatch.flops.formulas.fourier import real_transforms, transforms
from flopwatch.flops.formulas.onnx.arguments import given, has, integer, result
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Numbers, Work, numbers_of, work


@formula("onnx::DFT")
def fourier(op: Op) -> Work | Unknown:
    """One transform for each line along the axis, of real or complex numbers; the parts of a complex one lie side by side.

    The inverse divides each part of each number by the length.
    """
    array, made = given(op, "input"), result(op)
    whole = len(array.shape)
    axis = integer(op, "axis", 1 if op.arguments.get("since_version", 20) < 20 else -2) % whole
    inverse, half = bool(op.arguments.get("inverse")), bool(op.arguments.get("onesided"))
    length = integer(op, "dft_length", 0)
    if not length:
        if has(op, "dft_length"):
            return Unknown(f"{op.name} of unknown length")
        length = 2 * (array.shape[axis] - 1) if inverse and half else array.shape[axis]
    real = array.shape[-1] == 1 or (inverse and half)
    numbers = numbers_of(array)
    count = prod(size for place, size in enumerate(array.shape[:-1]) if place != axis)
    scaled = work(numbers, mul=made.size if inverse else 0)
    if real:
        return real_transforms(numbers, length, count) + scaled
    return transforms(Numbers(numbers.dtype, True), length, count) + scaled


@formula("onnx::STFT")
def short_fourier(op: Op) -> Work | Unknown:
    """Frames of the signal, times a window where there is one, each transformed."""
    signal, made = given(op, "signal"), result(op)
    window = op.arguments.get("window")
    length = integer(op, "frame_length", 0)
    if not length and isinstance(window, Array):
        length = window.shape[0]
    if not length:
        if has(op, "frame_length"):
            return Unknown(f"{op.name} of unknown frame length")
        length = signal.shape[1]
    frames = made.shape[0] * made.shape[1]
    numbers = numbers_of(signal)
    is_complex = len(signal.shape) > 2 and signal.shape[-1] == 2
    weighed = frames * length * (2 if is_complex else 1) if isinstance(window, Array) else 0
    if is_complex:
        return transforms(Numbers(numbers.dtype, True), length, frames) + work(numbers, mul=weighed)
    return real_transforms(numbers, length, frames) + work(numbers, mul=weighed)


@formula("onnx::HannWindow", "onnx::HammingWindow")
def raised_cosine(op: Op) -> Work:
    """a - b·cos(2π·n/N)."""
    array = result(op)
    return work(array, mul=array.size, transcendental=array.size, fma=array.size)


@formula("onnx::BlackmanWindow")
def blackman(op: Op) -> Work:
    """a - b·cos(2π·n/N) + c·cos(4π·n/N)."""
    array = result(op)
    return work(array, mul=2 * array.size, transcendental=2 * array.size, fma=2 * array.size)


@formula("onnx::Resize", "onnx::Upsample")
def resized(op: Op) -> Work | Free:
    """Each result from its neighbours along the axes whose size changes: two of each for "linear", four for "cubic"."""
    array = op.arguments.get("X")
    made = result(op)
    mode = op.arguments.get("mode") or "nearest"
    if mode == "nearest" or not isinstance(array, Array):
        return Free("copies the nearest neighbour")
    pairs = list(zip(array.shape, made.shape, strict=True))
    axes = [place for place, (before, after) in enumerate(pairs) if before != after]
    numbers = numbers_of(made)
    if op.arguments.get("antialias") and axes:
        images = prod(size for place, size in enumerate(made.shape) if place not in axes)
        before = tuple(array.shape[place] for place in axes)
        after = tuple(made.shape[place] for place in axes)
        scales = tuple(one / two if two else 0.0 for one, two in zip(before, after, strict=True))
        return resampling.antialiased(numbers, images, before, after, scales, 2 if mode == "cubic" else 1)
    if mode == "linear":
        return resampling.linear(numbers, made.size, len(axes))
    # Rows of four points, and columns of their values: 1, 5, 21 sums of four products.
    sums = (4 ** len(axes) - 1) // 3 * made.size
    return work(numbers, mul=sums, fma=3 * sums)


@formula("onnx::GridSample", "com.microsoft::GridSample")
def sampled(op: Op) -> Work:
    """Images sampled at given positions."""
    array, made = given(op, "X"), result(op)
    axes = len(array.shape) - 2
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(op.arguments.get("mode", "linear"), op.arguments.get("mode"))
    points = made.shape[0] * prod(made.shape[2:])
    padding, corners = op.arguments.get("padding_mode", "zeros"), bool(op.arguments.get("align_corners"))
    return resampling.grid_sample(numbers_of(array), points, array.shape[1], axes, mode or "linear", padding, corners)


@formula("onnx::AffineGrid")
def affine(op: Op) -> Work:
    """A regular grid moved by an affine map."""
    array = result(op)
    axes = array.shape[-1]
    return resampling.affine_grid(numbers_of(array), array.size // axes if axes else 0, axes)


@formula("onnx::NonMaxSuppression")
def suppressed(op: Op) -> Work:
    """Overlaps of all pairs of boxes, for each image; classes share them."""
    boxes = given(op, "boxes")
    return boxes.shape[0] * regions.suppressed(numbers_of(boxes), boxes.shape[1])


@formula("onnx::RoiAlign")
def region_align(op: Op) -> Work | Unknown:
    """Bins of regions, each the mean of samples in between points; or their maximum, which is not counted yet."""
    array, made = given(op, "X"), result(op)
    samples = op.arguments.get("sampling_ratio") or 0
    if samples < 1:
        return Unknown(f"{op.name} with samples by the size of the region")
    if op.arguments.get("mode", "avg") != "avg":
        return Unknown(f"{op.name} of maxima")
    offset = op.arguments.get("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
    if op.arguments.get("since_version", 16) < 16:
        offset = False
    return regions.sampled(
        numbers_of(array), made.shape[0], made.shape[1], made.shape[2], made.shape[3], samples, offset
    )


@formula("onnx::ScatterElements", "onnx::ScatterND")
def scattered(op: Op) -> Work | Free:
    """Values put to their places, or joined to what is there."""
    how = op.arguments.get("reduction") or "none"
    if how == "none":
        return Free("placement by index")
    joined = {"add": "sum", "mul": "prod", "max": "max", "min": "max"}[how]
    updates = given(op, "updates")
    return accumulation.scattered(numbers_of(updates), updates.size, joined)
