"""One convolution of a live torch: the multiply-adds of its closed form, with or without the padded border, for any number of threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.machine import helpers

pytestmark = [pytest.mark.engine, pytest.mark.torch, pytest.mark.slow]

CHANNELS, SIDE, KERNEL = 64, 56, 3
PADDED = CHANNELS * CHANNELS * (SIDE * KERNEL) ** 2
"""Multiply-adds where the zeros of the border are multiplied too."""
SKIPPED = CHANNELS * CHANNELS * (SIDE * KERNEL - 2) ** 2
"""Multiply-adds where they are not: the outer rows and columns meet one row or column of the kernel less."""

PROGRAM = f"""
import sys
import torch
torch.set_num_threads(int(sys.argv[2]))
conv = torch.nn.Conv2d({CHANNELS}, {CHANNELS}, {KERNEL}, padding=1, bias=False)
torch.nn.init.ones_(conv.weight)
image = torch.ones(1, {CHANNELS}, {SIDE}, {SIDE})
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        result = conv(image)
        assert result[0, 0, 5, 5] == {CHANNELS} * {KERNEL}**2
"""


def multiply_adds(python: str, threads: int, isa: str) -> int:
    """Lanes of fp32 fma instructions in one convolution."""
    env = {"ONEDNN_MAX_CPU_ISA": isa}
    lanes = []
    for calls in (1, 2):
        counted = helpers.count([python, "-c", PROGRAM, str(calls), str(threads)], env=env, limit=1200)
        assert counted.run.code == 0, counted.run.stderr
        assert counted.record["complete"], counted.record["partial"]
        lanes.append(sum(number * key[2] for key, number in counted.operations().items() if key[:2] == ("fma", "fp32")))
    return lanes[1] - lanes[0]


def test_sizes() -> None:
    assert (PADDED, SKIPPED) == (115_605_504, 112_869_376)


@pytest.mark.parametrize("isa", ["DEFAULT", "AVX2"])
def test_one_total_for_one_and_two_threads(isa: str, record_property: Callable[[str, object], None]) -> None:
    helpers.need_machine("avx2", "fma")
    python = helpers.need_python("torch")
    found = multiply_adds(python, 1, isa)
    record_property("multiply_adds", found)
    assert found in (PADDED, SKIPPED)
    assert multiply_adds(python, 2, isa) == found
