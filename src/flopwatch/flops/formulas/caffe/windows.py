"""Layers of Caffe that slide a window, and resizing."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import pooling, resampling
from flopwatch.flops.formulas.caffe.reading import bottom_of, made, numbers, setting
from flopwatch.flops.formulas.convolution import Axis, Sizes, convolution
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, total, work


@formula("caffe::Convolution", "caffe::ConvolutionDepthwise", "caffe::DepthwiseConvolution")
@formula("caffe::Deconvolution", "caffe::DeconvolutionDepthwise")
def _convolution(op: Op) -> Work:
    """Output positions times weights, of the transposed one input positions; one addition for each output element with a bias.

    Each bottom is convolved with the same weights.
    """
    weight: Array = setting(op, "weight")
    axis = setting(op, "axis")
    biased = op.arguments.get("bias") is not None
    transposed = op.name.startswith("caffe::Deconv")
    works: list[Work] = []
    for bottom, top in zip(setting(op, "bottoms"), op.outputs, strict=True):
        assert top is not None
        small, large = (bottom, top) if transposed else (top, bottom)
        sizes = (small.shape[axis + 1 :], large.shape[axis + 1 :], weight.shape[2:])
        windows = (setting(op, "stride"), setting(op, "pad"), setting(op, "dilation"))
        axes = tuple(map(Axis, *sizes, *windows))
        works.append(
            convolution(
                numbers(op), Sizes(prod(bottom.shape[:axis]), weight.size, axes), bias=top.size if biased else 0
            )
        )
    return total(works)


@formula("caffe::Pooling")
def _pooling(op: Op) -> Work:
    """Windows are cut off where they leave the image, as Caffe does; an average divides by the size with padding."""
    top = op.outputs[0]
    assert top is not None
    return _pooled(op, top.shape[2:], setting(op, "kernel"), setting(op, "stride"), setting(op, "pad"))


@formula("caffe::SPP")
def _pyramid(op: Op) -> Work:
    """A pooling for each level, to 2^level bins along each axis."""
    works: list[Work] = []
    for level, (kernel, pad) in enumerate(setting(op, "levels")):
        works.append(_pooled(op, (2**level,) * 2, kernel, kernel, pad))
    return total(works)


def _pooled(
    op: Op, after: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...]
) -> Work:
    bottom = bottom_of(op)
    planes = prod(bottom.shape[:2])
    windows = planes * prod(after)
    taken = planes * pooling.windows(bottom.shape[2:], after, kernel, stride, pad)
    method = setting(op, "method")
    if method == "MAX":
        return pooling.largest(numbers(op), taken, windows)
    if method == "AVE":
        return pooling.adaptive_average(numbers(op), taken, windows, planes=planes)
    # Stochastic pooling outside of training: Σ x² / Σ x of each window (arXiv:1301.3557), both sums from zero.
    return work(numbers(op), fma=taken, add=taken, div=windows)


@formula("caffe::Interp")
def _interp(op: Op) -> Work:
    return resampling.linear(numbers(op), made(op), 2)
