"""Deformable convolution of torchvision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.deformable import Deformed, deformable, deformable_backward


@formula("torchvision::deform_conv2d")
def convolve(op: Op) -> Work:
    """`weight` (C_out, C_in / groups, height, width); there is always a bias, though it may be all zeros."""
    given = op.arguments
    result = result_of(op)
    return deformable(given["input"], _sizes(given, result), masked=bool(given["use_mask"]), bias=result.size)


@formula("torchvision::_deform_conv2d_backward")
def convolve_backward(op: Op) -> Work:
    """All gradients."""
    given = op.arguments
    gradient: Array = given["grad"]
    sizes = _sizes(given, gradient)
    return deformable_backward(
        gradient, sizes, masked=bool(given["use_mask"]), outputs=gradient.size, channels=gradient.shape[1]
    )


def _sizes(given: Mapping[str, Any], result: Array) -> Deformed:
    weight: Array = given["weight"]
    height, width = weight.shape[2:]
    positions = result.shape[0] * result.shape[2] * result.shape[3]
    return Deformed(positions, height * width, weight.size, given["input"].shape[1], given["offset_groups"])
