"""Pooling: windows of the input, or all of a plane."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import pooling
from flopwatch.flops.formulas.onnx.arguments import given, ints, result
from flopwatch.flops.formulas.onnx.convolution import padding_of
from flopwatch.flops.formulas.reductions import steps
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


def _taken(op: Op, large: Array, small: Array) -> int:
    """Input elements in all windows of all planes."""
    kernel = tuple(op.arguments["kernel_shape"])
    dims = len(kernel)
    inputs, outputs = large.shape[2:], small.shape[2:]
    return prod(small.shape[:2]) * pooling.windows(
        inputs,
        outputs,
        kernel,
        ints(op, "strides", (1,) * dims),
        padding_of(op, inputs, outputs, kernel),
        ints(op, "dilations", (1,) * dims),
    )


@formula("onnx::MaxPool")
def largest(op: Op) -> Work:
    """The maximum of each window."""
    large, small = given(op, "X"), result(op)
    return pooling.largest(large, _taken(op, large, small), small.size)


@formula("onnx::AveragePool")
def average(op: Op) -> Work:
    """The mean of each window."""
    large, small = given(op, "X"), result(op)
    return pooling.average(large, _taken(op, large, small), small.size)


@formula("onnx::LpPool")
def norm(op: Op) -> Work:
    """(Σ |x|^p)^(1/p) of each window: squares and a root for p = 2, amounts for 1, else a power for each number and each sum."""
    large, small = given(op, "X"), result(op)
    return _norms(op, large, _taken(op, large, small), small.size)


def _norms(op: Op, array: Array, taken: int, made: int) -> Work:
    p = op.arguments.get("p", 2)
    summed = steps(taken, made)
    if p == 1:
        return work(array, add=summed)
    if p == 2:
        return work(array, mul=taken, add=summed, sqrt=made)
    return work(array, transcendental=taken + made, add=summed)


@formula("onnx::GlobalMaxPool")
def largest_of_all(op: Op) -> Work:
    """The maximum of each plane."""
    large, small = given(op, "X"), result(op)
    return pooling.largest(large, large.size, small.size)


@formula("onnx::GlobalAveragePool")
def average_of_all(op: Op) -> Work:
    """The mean of each plane."""
    large, small = given(op, "X"), result(op)
    return pooling.adaptive_average(large, large.size, small.size, planes=small.size)


@formula("onnx::GlobalLpPool")
def norm_of_all(op: Op) -> Work:
    """The norm of each plane."""
    large, small = given(op, "X"), result(op)
    return _norms(op, large, large.size, small.size)
