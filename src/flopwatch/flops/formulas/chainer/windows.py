"""Functions of Chainer that slide a window: convolutions, forward and backward, and pooling."""

from __future__ import annotations

from math import prod

from flopwatch.events import Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import pooling, reductions, resampling
from flopwatch.flops.formulas.chainer.reading import first, inputs_of, numbers, result, setting
from flopwatch.flops.formulas.convolution import Axis, Sizes, convolution
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work

Settings = tuple[int, ...]


def _settings(op: Op) -> tuple[Settings, Settings, Settings]:
    """Stride, padding and dilation of each axis, as a function for images or for any number of dimensions has them."""
    if setting(op, "sy") is not None:
        pair = (setting(op, "sy"), setting(op, "sx")), (setting(op, "ph", 0), setting(op, "pw", 0))
        return *pair, (setting(op, "dy", 1), setting(op, "dx", 1))
    stride: Settings = tuple(setting(op, "stride"))
    return stride, tuple(setting(op, "pad")), tuple(setting(op, "dilate") or (1,) * len(stride))


def _sizes(op: Op, small: Settings, large: Settings, weight: Settings, batch: int) -> Sizes:
    axes = map(Axis, small[2:], large[2:], weight[2:], *_settings(op))
    return Sizes(batch, prod(weight), tuple(axes))


@formula("chainer::Convolution2DFunction", "chainer::ConvolutionND")
def _convolution(op: Op) -> Work:
    x, weight = inputs_of(op)[:2]
    sizes = _sizes(op, result(op).shape, x.shape, weight.shape, x.shape[0])
    return convolution(numbers(op), sizes, bias=result(op).size if len(inputs_of(op)) > 2 else 0)


@formula("chainer::Deconvolution2DFunction", "chainer::DeconvolutionND")
def _deconvolution(op: Op) -> Work:
    """Also the gradient of a convolution's input."""
    x, weight = inputs_of(op)[:2]
    sizes = _sizes(op, x.shape, result(op).shape, weight.shape, x.shape[0])
    return convolution(numbers(op), sizes, bias=result(op).size if len(inputs_of(op)) > 2 else 0)


@formula("chainer::Convolution2DGradW", "chainer::ConvolutionNDGradW")
def _convolution_grad_weight(op: Op) -> Work:
    """As many products as forward; input and gradient go in."""
    x, gradient = inputs_of(op)[:2]
    return convolution(numbers(op), _sizes(op, gradient.shape, x.shape, result(op).shape, x.shape[0]))


@formula("chainer::LocalConvolution2DFunction")
def _local_convolution(op: Op) -> Work:
    """A kernel of its own for each position: in · taps products for each element of the result."""
    weight = inputs_of(op)[1].shape
    mac = result(op).size * prod(weight[-3:])
    return work(numbers(op), mac=mac, add=result(op).size if len(inputs_of(op)) > 2 else 0)


def _windows(op: Op, before: Settings, after: Settings) -> tuple[int, int, int]:
    """Elements in all windows, windows, planes."""
    kernel: Settings
    if setting(op, "kh") is not None:
        kernel = (setting(op, "kh"), setting(op, "kw"))
    else:
        kernel = tuple(setting(op, "ksize"))
    stride, pad, _ = _settings(op)
    planes = prod(before[:2])
    return planes * pooling.windows(before[2:], after[2:], kernel, stride, pad), planes * prod(after[2:]), planes


@formula("chainer::MaxPoolingND")
def _largest(op: Op) -> Work:
    taken, made, _ = _windows(op, first(op).shape, result(op).shape)
    return pooling.largest(numbers(op), taken, made)


@formula("chainer::AveragePooling2D", "chainer::AveragePoolingND")
def _average(op: Op) -> Work:
    taken, made, planes = _windows(op, first(op).shape, result(op).shape)
    return pooling.adaptive_average(numbers(op), taken, made, planes=planes)


@formula("chainer::MaxPoolingNDGrad")
def _largest_grad(op: Op) -> Work:
    """Each gradient added to the element that was the maximum."""
    return pooling.largest_backward(numbers(op), first(op).size)


@formula("chainer::Unpooling2DGrad", "chainer::UnpoolingNDGrad")
def _unpooling_grad(op: Op) -> Work:
    """The gradients of all copies of a number added up."""
    taken, made, _ = _windows(op, first(op).shape, result(op).shape)
    return reductions.summed(numbers(op), taken, made)


@formula("chainer::ResizeImages")
def _resize(op: Op) -> Work | Free:
    """Bilinear, or copies of the nearest."""
    if setting(op, "mode") == "nearest":
        return Free("copies")
    return resampling.linear(numbers(op), result(op).size, 2)


@formula("chainer::ResizeImagesGrad")
def _resize_grad(op: Op) -> Work:
    gradients = first(op).size
    if setting(op, "mode") == "nearest":
        return resampling.nearest_backward(numbers(op), gradients)
    return resampling.linear_backward(numbers(op), gradients, 2)


@formula("chainer::AveragePooling2DGrad", "chainer::AveragePoolingNDGrad")
def _average_grad(op: Op) -> Work:
    taken, made, _ = _windows(op, result(op).shape, first(op).shape)
    return pooling.average_backward(numbers(op), taken, made)
