"""Pooling of one to three dimensions, fixed, adaptive and fractional, and its gradients."""

from __future__ import annotations

from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import pooling
from flopwatch.flops.formulas.aten.pointwise import result
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work


def _dims(name: str) -> int:
    """How many dimensions an operator pools: the digit in its name."""
    return int(name[name.index("pool") + 4])


def _windows(op: Op, large: Array, small: Array) -> int:
    """Input elements in all windows of all planes, from the input and from what has one element per window."""
    given, dims = op.arguments, _dims(op.name)
    planes = prod(small.shape[:-dims])
    return planes * pooling.windows(
        large.shape[-dims:],
        small.shape[-dims:],
        _ints(given["kernel_size"]),
        _ints(given.get("stride") or ()),
        _ints(given.get("padding", 0)),
        _ints(given.get("dilation", 1)),
    )


def _ints(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


@formula("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d")
def average(op: Op) -> Work:
    """The mean of each window."""
    large, small = op.arguments["self"], result(op)
    return pooling.average(small, _windows(op, large, small), small.size)


@formula("aten::avg_pool2d_backward", "aten::avg_pool3d_backward")
def average_backward(op: Op) -> Work:
    """The gradients of all windows."""
    large, small = op.arguments["self"], op.arguments["grad_output"]
    return pooling.average_backward(small, _windows(op, large, small), small.size)


@formula(
    "aten::max_pool1d",
    "aten::max_pool2d",
    "aten::max_pool3d",
    "aten::max_pool1d_with_indices",
    "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices",
    "aten::mkldnn_max_pool2d",
    "aten::mkldnn_max_pool3d",
    "aten::quantized_max_pool1d",
    "aten::quantized_max_pool2d",
    "aten::quantized_max_pool3d",
)
def largest(op: Op) -> Work:
    """The maximum of each window; of quantized numbers, that is integer work."""
    large, small = op.arguments["self"], result(op)
    return pooling.largest(large, _windows(op, large, small), small.size)


@formula(
    "aten::max_pool2d_backward",
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices_backward",
    "aten::mkldnn_max_pool2d_backward",
    "aten::mkldnn_max_pool3d_backward",
    "aten::adaptive_max_pool2d_backward",
    "aten::adaptive_max_pool3d_backward",
    "aten::fractional_max_pool2d_backward",
    "aten::fractional_max_pool3d_backward",
)
def largest_backward(op: Op) -> Work:
    """Each gradient goes to the place of its maximum."""
    small = op.arguments["grad_output"]
    return pooling.largest_backward(small, small.size)


def _adaptive(op: Op, large: Array, small: Array) -> tuple[int, int]:
    dims = _dims(op.name)
    planes = prod(small.shape[:-dims])
    return planes * pooling.adaptive_windows(large.shape[-dims:], small.shape[-dims:]), planes


@formula(
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
    "aten::mkldnn_adaptive_avg_pool2d",
)
def adaptive_average(op: Op) -> Work:
    """The mean of each window."""
    large, small = op.arguments["self"], result(op)
    taken, planes = _adaptive(op, large, small)
    return pooling.adaptive_average(small, taken, small.size, planes=planes)


@formula(
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward",
    "aten::adaptive_avg_pool3d_backward",
    "aten::mkldnn_adaptive_avg_pool2d_backward",
)
def adaptive_average_backward(op: Op) -> Work:
    """The gradients of all windows."""
    large, small = op.arguments["self"], op.arguments["grad_output"]
    return pooling.average_backward(small, _adaptive(op, large, small)[0], small.size)


@formula("aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")
def adaptive_largest(op: Op) -> Work:
    """The maximum of each window."""
    large, small = op.arguments["self"], result(op)
    return pooling.largest(large, _adaptive(op, large, small)[0], small.size)


@formula("aten::fractional_max_pool2d", "aten::fractional_max_pool3d")
def fractional_largest(op: Op) -> Work:
    """The maximum of each window, all of the kernel's size, at places drawn at random (arXiv:1412.6071)."""
    small, dims = result(op), _dims(op.name)
    kernel = _ints(op.arguments["kernel_size"])
    taken = small.size * prod(kernel * dims if len(kernel) == 1 else kernel)
    return pooling.largest(small, taken, small.size)
