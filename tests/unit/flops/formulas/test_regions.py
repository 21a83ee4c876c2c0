"""Regions of images: samples in boxes and overlaps of boxes, written out and checked against torchvision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import estimate, regions
from tests.unit.flops.formulas.counting import Counting, larger, operations, smaller
from tests.unit.flops.formulas.numerics import SINGLE, counted, flop, values, weighted, worth

BOXES, CHANNELS, HEIGHT, WIDTH, SAMPLES = 3, 2, 2, 3, 2


def test_overlaps() -> None:
    seen = Counting()
    boxes = counted(seen, [[0, 0, 2, 2], [1, 1, 3, 3], [0, 1, 2, 4]])
    areas = [(right - left) * (low - top) for left, top, right, low in boxes]
    overlaps = []
    for one, other in itertools.combinations(range(BOXES), 2):
        a, b = boxes[one], boxes[other]
        width = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), 0)
        height = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), 0)
        common = width * height
        overlaps.append(float(common / (areas[one] + areas[other] - common)))
    assert np.allclose(overlaps, [1 / 7, 2 / 8, 2 / 8])
    assert operations(regions.suppressed(SINGLE, BOXES)) == +seen.operations
    found = worth("torchvision::nms", Array((2,), "int64"), dets=Array((BOXES, 4)), scores=Array((BOXES,)))
    assert found == regions.suppressed(SINGLE, BOXES)


@pytest.mark.torch
@pytest.mark.parametrize("aligned", [False, True])
def test_samples_in_boxes(aligned: bool) -> None:
    torch = pytest.importorskip("torch")
    torchvision = pytest.importorskip("torchvision")
    from tests.unit.flops.formulas.calls import calls

    image = torch.randn(1, CHANNELS, 8, 9, dtype=torch.float64)
    boxes = [[1.0, 2.0, 10.5, 12.25], [3.0, 1.0, 9.0, 7.0], [0.5, 0.5, 4.5, 6.0]]
    seen = Counting()
    read = counted(seen, image[0].numpy())
    made = np.empty((BOXES, CHANNELS, HEIGHT, WIDTH), dtype=object)
    for k, box in enumerate(boxes):
        left, top, right, low = (side * 0.5 for side in counted(seen, box))
        if aligned:
            left, top, right, low = left - 0.5, top - 0.5, right - 0.5, low - 0.5
        width, height = right - left, low - top
        if not aligned:
            width, height = larger(width, 1.0), larger(height, 1.0)
        lines = []
        for start, side, bins, size in ((top, height, HEIGHT, 8), (left, width, WIDTH, 9)):
            step = (side / bins) / SAMPLES
            line = []
            for i in range(bins * SAMPLES):
                at = larger(start + step * (i + 0.5), 0)
                first = min(int(float(at)), size - 2)
                line.append((first, (first + 1) - at, at - first))
            lines.append(line)
        for i, j in np.ndindex(HEIGHT, WIDTH):
            points = []
            for y, x in itertools.product(
                lines[0][i * SAMPLES : (i + 1) * SAMPLES], lines[1][j * SAMPLES : (j + 1) * SAMPLES]
            ):
                corners = [(y[0] + a, x[0] + b, y[1 + a] * x[1 + b]) for a in (0, 1) for b in (0, 1)]
                points.append(corners)
            for c in range(CHANNELS):
                sampled = [weighted([read[c, r, s] for r, s, _ in p], [w for *_, w in p]) for p in points]
                whole = sampled[0]
                for each in sampled[1:]:
                    whole = whole + each
                made[k, c, i, j] = whole * (1 / SAMPLES**2)
    rois = torch.cat([torch.zeros(BOXES, 1, dtype=torch.float64), torch.tensor(boxes, dtype=torch.float64)], 1)
    arguments = (image, rois, (HEIGHT, WIDTH), 0.5, SAMPLES, aligned)
    assert np.allclose(values(made), torchvision.ops.roi_align(*arguments).numpy())
    (op,) = (each for each in calls(torchvision.ops.roi_align, *arguments) if each.name.startswith("torchvision"))
    assert operations(worth(op.name, *op.outputs, **op.arguments)) == +seen.operations


@pytest.mark.torch
def test_gradients_of_samples_go_to_their_four_corners() -> None:
    torch = pytest.importorskip("torch")
    torchvision = pytest.importorskip("torchvision")
    from tests.unit.flops.formulas.calls import calls

    image = torch.randn(1, CHANNELS, 8, 8, requires_grad=True)
    box = [torch.tensor([[1.0, 1.0, 6.0, 6.0]])]
    made = torchvision.ops.roi_align(image, box, (HEIGHT, WIDTH), sampling_ratio=SAMPLES)
    (op,) = (each for each in calls(made.backward, torch.ones_like(made)) if each.name.startswith("torchvision"))
    points = HEIGHT * WIDTH * SAMPLES**2
    lines = (HEIGHT + WIDTH) * SAMPLES
    setting_up = 4 + 2 + 4 + 2 + lines * (2 + 1 + 2) + 4 * points
    assert flop(worth(op.name, *op.outputs, **op.arguments)) == setting_up + HEIGHT * WIDTH * CHANNELS * (
        1 + 2 * 4 * SAMPLES**2
    )
    pooled = torchvision.ops.roi_pool(image, box, (HEIGHT, WIDTH))
    (op,) = (each for each in calls(pooled.backward, torch.ones_like(pooled)) if each.name.startswith("torchvision"))
    assert flop(worth(op.name, *op.outputs, **op.arguments)) == HEIGHT * WIDTH * CHANNELS


def test_what_the_sizes_of_boxes_decide_is_unknown() -> None:
    image, made = Array((1, CHANNELS, 8, 8)), Array((BOXES, CHANNELS, HEIGHT, WIDTH))
    adaptive = Op("torchvision::roi_align", {"input": image, "sampling_ratio": -1, "aligned": False}, (made,))
    assert estimate(adaptive) == Unknown("torchvision::roi_align")
    assert estimate(Op("torchvision::roi_pool", {"input": image}, (made,))) == Unknown("torchvision::roi_pool")
