"""Convolutions of any number of dimensions, forward and backward, and which of their products fall on padding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


class Axis(NamedTuple):
    """One dimension of a convolution: `small` is the side with a position for each kernel placement, `large` the other.

    That is output and input for a convolution, input and output for a transposed one. Tap t of the kernel at position p of
    the small side meets position p · stride + t · dilation - before of the large side, if there is one.
    """

    small: int
    large: int
    kernel: int
    stride: int = 1
    before: int = 0
    dilation: int = 1


class Sizes(NamedTuple):
    """A convolution: `weights` elements of the kernel tensor are used at each position of the small side, once per batch item."""

    batch: int
    weights: int
    axes: tuple[Axis, ...]


@lru_cache(maxsize=4096)
def met(axis: Axis) -> int:
    """How many pairs of a position of the small side and a tap of the kernel meet a real position of the large side."""
    small, large, kernel, stride, before, dilation = axis
    pairs = 0
    if small < kernel:  # a window as large as a huge image: position by position is shorter
        for position in range(small):
            offset = position * stride - before
            first = max(0, -(offset // dilation))
            last = min(kernel - 1, (large - 1 - offset) // dilation)
            pairs += max(0, last - first + 1)
        return pairs
    for tap in range(kernel):
        offset = tap * dilation - before
        first = max(0, -(offset // stride))
        last = min(small - 1, (large - 1 - offset) // stride)
        pairs += max(0, last - first + 1)
    return pairs


@lru_cache(maxsize=4096)
def products(sizes: Sizes) -> tuple[int, int]:
    """Multiply-accumulates of a convolution, and how many of them fall on padding (transposed: outside of the output).

    batch · positions of the small side · elements of the kernel tensor: out · C_out · C_in / groups · taps for a convolution
    and in · C_in · C_out / groups · taps for a transposed one (Dumoulin and Visin, A guide to convolution arithmetic, 2016).
    Where a kernel tensor is used with real positions alone, the pairs of each dimension multiply.
    """
    batch, weights, axes = sizes
    positions = 1
    pairs = 1
    taps = 1
    for axis in axes:
        positions *= axis.small
        taps *= axis.kernel
        pairs *= met(axis)
    mac = batch * positions * weights
    real = batch * pairs * (weights // taps) if taps else 0
    return mac, mac - real


def convolution(numbers: Numbers | Array, sizes: Sizes, *, bias: int = 0) -> Work:
    """A convolution or transposed convolution; `bias` is the number of output elements that one is added to."""
    mac, padding = products(sizes)
    return work(numbers, mac=mac, padding=padding, add=bias)


def backward(
    numbers: Numbers | Array, sizes: Sizes, *, inputs: bool, weights: bool, channels: int = 0, outputs: int = 0
) -> Work:
    """The gradients of a convolution that are asked for.

    The gradients by the input and by the weights pair the same positions and taps as the forward does, so each is as many
    products, whatever the groups. The gradient by the bias sums all `outputs` output elements into `channels` sums (0: none).
    """
    mac, padding = products(sizes)
    times = inputs + weights
    return work(numbers, mac=times * mac, padding=times * padding, add=max(0, outputs - channels) if channels else 0)


def same(kernel: int, dilation: int) -> int:
    """How much padding "same" puts before a dimension; of an odd number, the greater half goes behind."""
    return dilation * (kernel - 1) // 2


def sizes_of(
    inputs: Sequence[int],
    weight: Sequence[int],
    outputs: Sequence[int],
    *,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] | str = (0,),
    dilation: Sequence[int] = (1,),
    transposed: bool = False,
    dims: int | None = None,
) -> Sizes:
    """The sizes of a convolution from shapes (batch, channels, …), (channels, channels, kernel …) and (batch, channels, …).

    The batch may be missing from both of the first and last. A list of one number stands for all dimensions; padding may be
    "same" or "valid". `dims`, where the weights may have more than two dimensions before those of the kernel (groups apart).
    """
    dims = len(weight) - 2 if dims is None else dims
    kernel = weight[len(weight) - dims :]
    small, large = (inputs, outputs) if transposed else (outputs, inputs)
    strides = _each(stride, dims)
    dilations = _each(dilation, dims)
    if isinstance(padding, str):
        before = tuple(map(same, kernel, dilations)) if padding == "same" else (0,) * dims
    else:
        before = _each(padding, dims)
    batch = small[0] if len(small) > dims + 1 else 1
    axes = tuple(map(Axis, small[len(small) - dims :], large[len(large) - dims :], kernel, strides, before, dilations))
    return Sizes(batch, prod(weight), axes)


def _each(values: Sequence[int], dims: int) -> tuple[int, ...]:
    return tuple(values) if len(values) == dims else tuple(values) * dims
