"""Deformable convolution: every tap of the kernel reads where an offset moves it to, between the pixels."""

from __future__ import annotations

from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


class Deformed(NamedTuple):
    """Sizes: `taps` of the kernel at `positions` of all results, `weights` elements of the kernel tensor.

    All `channels` of the input share `fields` fields of offsets: that many are there for each tap and position.
    """

    positions: int
    taps: int
    weights: int
    channels: int
    fields: int

    @property
    def places(self) -> int:
        """Places between pixels that are looked up."""
        return self.positions * self.taps * self.fields

    @property
    def values(self) -> int:
        """Values that are made of four pixels."""
        return self.positions * self.taps * self.channels


def deformable(numbers: Numbers | Array, of: Deformed, *, masked: bool, bias: int = 0) -> Work:
    """Deformable convolution (Dai et al., 2017; with a mask, Zhu et al., 2019).

    positions · weights MAC, as a convolution; which of them are on padding depends on the offsets. A place: two additions of
    offsets, four differences to the pixels around and four products of these. A value: four products and three additions, and
    a product with the mask. `bias` elements of the result get one.
    """
    places, values = of.places, of.values
    return work(
        numbers,
        mac=of.positions * of.weights,
        mul=4 * places + (5 if masked else 4) * values,
        add=6 * places + 3 * values + bias,
    )


def deformable_backward(numbers: Numbers | Array, of: Deformed, *, masked: bool, outputs: int, channels: int) -> Work:
    """All gradients, what the forward made being kept: by weights and by values as many MAC as the forward, each.

    A value gives its gradient to four pixels (a product and an addition each), to both offsets (the slope of the interpolation
    is two differences, two products and an addition; times the gradient, and summed over the channels of a field), and to the
    mask (a product, summed likewise). With a mask a value's gradient and those of offsets are multiplied by it. The bias sums
    the results of each of its `channels`.
    """
    places, values = of.places, of.values
    sums = max(0, values - places)
    mul = 4 * values + 2 * (2 + 1) * values
    add = 4 * values + 2 * (3 * values + sums) + max(0, outputs - channels)
    if masked:
        mul += values + 2 * places + values
        add += sums
    return work(numbers, mac=2 * of.positions * of.weights, mul=mul, add=add)
