"""Boxes in images: values sampled inside of them, and how far they overlap."""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def suppressed(numbers: Numbers, boxes: int) -> Work:
    """Non-maximum suppression, dense: the overlap of every pair of boxes, though boxes that are out need no more comparison.

    Area of a box: two differences, a product. A pair: four minmax for the corners of what is common, two differences, both cut
    off at zero, a product; union: a sum and a difference; their quotient.
    """
    pairs = boxes * (boxes - 1) // 2
    return work(numbers, add=2 * boxes + 4 * pairs, mul=boxes + pairs, div=pairs, minmax=6 * pairs)


def sampled(numbers: Numbers, boxes: int, channels: int, height: int, width: int, samples: int, offset: bool) -> Work:
    """ROI align: each of height × width bins of a box is the mean of samples × samples values, sampled linearly in between points.

    (He et al., Mask R-CNN, 2017.) `channels` values in each bin. Box: four products with the scale, four differences where there
    is an offset of half a point, else two minmax that keep it from being empty; two differences for its sides, and for each side
    the bin and the step within it (two quotients). Each of height · samples rows and width · samples columns: its place
    (a product and a sum), cut off at zero (minmax), the distances to both neighbours (two sums). Each sample: four corner weights;
    for each channel, four products summed. Bin: samples² - 1 sums, a product with 1 / samples².
    """
    lines = (height + width) * samples
    points = height * width * samples * samples
    bins = height * width * channels
    each = work(
        numbers,
        fma=lines + 3 * points * channels,
        mul=4 + 4 * points + points * channels + bins,
        add=(4 if offset else 0) + 2 + 2 * lines + bins * (samples * samples - 1),
        div=4,
        minmax=(0 if offset else 2) + lines,
    )
    return boxes * each


def sampled_backward(
    numbers: Numbers, boxes: int, channels: int, height: int, width: int, samples: int, offset: bool
) -> Work:
    """Gradient of `sampled`: places and weights again; each gradient by 1 / samples², times each corner weight, is added to a point."""
    lines = (height + width) * samples
    points = height * width * samples * samples
    each = work(
        numbers,
        fma=lines + 4 * points * channels,
        mul=4 + 4 * points + height * width * channels,
        add=(4 if offset else 0) + 2 + 2 * lines,
        div=4,
        minmax=(0 if offset else 2) + lines,
    )
    return boxes * each
