"""Pooling: each result is made of one window of the input, cut off where it leaves the input.

`taken` is how many input elements all windows hold together, `made` how many windows there are; `windows` and
`adaptive_windows` tell `taken` for the dimensions that are pooled, to be multiplied by the number of planes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from flopwatch.events import Array
from flopwatch.flops.formulas.convolution import Axis, met
from flopwatch.flops.formulas.reductions import mean, steps
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


def windows(
    inputs: Sequence[int],
    outputs: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
) -> int:
    """Input elements in all windows of a plane; a list of one number stands for all dimensions, no stride for the kernel."""
    dims = len(outputs)
    kernels = _each(kernel, dims)
    axes = map(
        Axis, outputs, inputs, kernels, _each(stride or kernels, dims), _each(padding, dims), _each(dilation, dims)
    )
    return prod(map(met, axes))


@lru_cache(maxsize=4096)
def adaptive_window(size: int, made: int) -> int:
    """Input elements in the windows of one dimension: window i begins at ⌊i·size/made⌋ and ends before ⌈(i + 1)·size/made⌉."""
    return sum(-(-(i + 1) * size // made) - i * size // made for i in range(made))


def adaptive_windows(inputs: Iterable[int], outputs: Iterable[int]) -> int:
    """Input elements in all windows of a plane of adaptive pooling."""
    return prod(map(adaptive_window, inputs, outputs))


def average(numbers: On, taken: int, made: int) -> Work:
    """The sum of each window, taken from zero, and a division: k additions and one division for a window of k.

    Not k - 1: an accumulator begins with zero, as windows overlap and are cut off and each is a loop of its own. Padding adds
    nothing, whether or not it counts in the divisor.
    """
    return work(numbers, add=taken, div=made)


def adaptive_average(numbers: On, taken: int, made: int, *, planes: int) -> Work:
    """As `average`; with one window per plane it is a mean, and counted as that (k - 1 additions, one division)."""
    return mean(numbers, taken, made) if made == planes else average(numbers, taken, made)


def average_backward(numbers: On, taken: int, made: int) -> Work:
    """Each gradient divided once and added to all elements of its window."""
    return work(numbers, add=taken, div=made)


def largest(numbers: On, taken: int, made: int) -> Work:
    """The maximum of each window, k - 1 minmax; it makes no difference whether its place is kept."""
    return work(numbers, minmax=steps(taken, made))


def largest_backward(numbers: On, made: int) -> Work:
    """Each gradient added to the element that was the maximum."""
    return work(numbers, add=made)


def _each(sizes: Sequence[int] | int, dims: int) -> Sequence[int]:
    if isinstance(sizes, int):
        return (sizes,) * dims
    return tuple(sizes) * dims if len(sizes) == 1 else sizes
