"""Deformable convolution against loops over numbers that count."""

from __future__ import annotations

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Numbers, Work, estimate
from flopwatch.flops.formulas.deformable import Deformed, deformable, deformable_backward
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, Number, accumulated, operations

FP32 = Numbers(DType.FP32)
POSITIONS, TAPS, OUTS, CHANNELS, FIELDS = 3, 4, 2, 4, 2


@pytest.mark.parametrize("masked", [False, True])
def test_it_is_what_its_loops_do(masked: bool) -> None:
    seen = Counting()
    weight = seen.numbers(OUTS, CHANNELS, TAPS)
    for _ in range(POSITIONS):
        values: dict[tuple[int, int], Number] = {}
        for tap in range(TAPS):
            for field in range(FIELDS):
                y, x = 0.25 + seen.number(0.5), 0.25 + seen.number(0.5)
                down, right = y - 0.0, x - 0.0
                up, left = 1 - down, 1 - right
                shares = (up * left, up * right, down * left, down * right)
                for channel in range(field * CHANNELS // FIELDS, (field + 1) * CHANNELS // FIELDS):
                    pixels = seen.numbers(4)
                    terms = [share * pixel for share, pixel in zip(shares, pixels, strict=True)]
                    value = terms[0] + terms[1] + terms[2] + terms[3]
                    values[channel, tap] = value * seen.number() if masked else value
        for out in range(OUTS):
            accumulated(weight[(out, *place)] * value for place, value in values.items()) + seen.number()
    found = deformable(
        FP32, Deformed(POSITIONS, TAPS, weight.size, CHANNELS, FIELDS), masked=masked, bias=POSITIONS * OUTS
    )
    assert operations(found) == +seen.operations
    assert found.mac == POSITIONS * OUTS * CHANNELS * TAPS


@pytest.mark.parametrize("masked", [False, True])
def test_its_gradients_are_what_their_loops_do(masked: bool) -> None:
    seen = Counting()
    weight = seen.numbers(OUTS, CHANNELS, TAPS)
    by_weight: dict[tuple[int, ...], Number | float] = {}
    by_bias: list[list[Number]] = [[] for _ in range(OUTS)]
    for _ in range(POSITIONS):
        gradient = seen.numbers(OUTS)
        for out in range(OUTS):
            by_bias[out].append(gradient[out])
        for tap in range(TAPS):
            for field in range(FIELDS):
                gathered: dict[str, list[Number]] = {"y": [], "x": [], "mask": []}
                mask, *shares = seen.numbers(5)
                for channel in range(field * CHANNELS // FIELDS, (field + 1) * CHANNELS // FIELDS):
                    by_value = accumulated(weight[out, channel, tap] * gradient[out] for out in range(OUTS))
                    kept = seen.number()
                    for out in range(OUTS):
                        place = (out, channel, tap)
                        by_weight[place] = by_weight.get(place, 0) + gradient[out] * kept
                    assert isinstance(by_value, Number)
                    if masked:
                        gathered["mask"].append(by_value * kept)
                    by_pixel = by_value * mask if masked else by_value
                    for share in shares:
                        seen.number() + by_pixel * share
                    for name in "yx":
                        a, b, c, d = seen.numbers(4)
                        gathered[name].append(((c - a) * shares[0] + (d - b) * shares[1]) * by_value)
                for name, terms in gathered.items():
                    for term in terms[1:]:
                        terms[0] + term
                    if masked and name != "mask":
                        terms[0] * mask
    for terms in by_bias:
        for term in terms[1:]:
            terms[0] + term
    of = Deformed(POSITIONS, TAPS, weight.size, CHANNELS, FIELDS)
    found = deformable_backward(FP32, of, masked=masked, outputs=POSITIONS * OUTS, channels=OUTS)
    assert operations(found) == +seen.operations
    assert found.mac == 2 * POSITIONS * OUTS * CHANNELS * TAPS


def test_it_is_read_by_the_names_of_its_arguments() -> None:
    given = {
        "input": Array((2, 6, 8, 8)),
        "weight": Array((4, 3, 3, 3)),
        "offset": Array((2, 2 * 3 * 9, 6, 6)),
        "offset_groups": 3,
        "use_mask": False,
    }
    found = estimate(Op("torchvision::deform_conv2d", given, (Array((2, 4, 6, 6)),)))
    assert isinstance(found, Work)
    assert found.mac == 2 * 6 * 6 * 4 * 3 * 9
