"""torchvision's own operators. Pooling over regions whose size the boxes decide is unknown: it takes their values."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, free, regions, work
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.work import numbers_of

free("tells a version", "torchvision::_cuda_version", moves=False)


@formula("torchvision::nms")
def nms(op: Op) -> Work:
    """Boxes (n, 4); dense, see `regions.suppressed`."""
    boxes: Array = op.arguments["dets"]
    return regions.suppressed(numbers_of(boxes), boxes.shape[0])


@formula("torchvision::roi_align", "torchvision::ps_roi_align")
def roi_align(op: Op) -> Work | Unknown:
    """Unknown without a `sampling_ratio`: then the sizes of the boxes decide how many samples there are.

    In the position-sensitive form each bin reads a channel of its own, and there always is an offset.
    """
    given, made = op.arguments, result_of(op)
    if given["sampling_ratio"] <= 0:
        return Unknown(op.name)
    boxes, channels, height, width = made.shape
    offset = bool(given.get("aligned", True))
    return regions.sampled(numbers_of(given["input"]), boxes, channels, height, width, given["sampling_ratio"], offset)


@formula("torchvision::_roi_align_backward", "torchvision::_ps_roi_align_backward")
def roi_align_backward(op: Op) -> Work | Unknown:
    """As forward."""
    given = op.arguments
    if given["sampling_ratio"] <= 0:
        return Unknown(op.name)
    gradient: Array = given["grad"]
    boxes, channels, height, width = gradient.shape
    offset = bool(given.get("aligned", True))
    return regions.sampled_backward(
        numbers_of(gradient), boxes, channels, height, width, given["sampling_ratio"], offset
    )


@formula("torchvision::_roi_pool_backward")
def roi_pool_backward(op: Op) -> Work:
    """Each gradient is added to the point that was the largest."""
    gradient: Array = op.arguments["grad"]
    return work(gradient, add=gradient.size)
