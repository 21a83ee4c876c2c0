"""One matrix product through BLAS: the same total for any number of threads, and nothing in it that is not explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.machine import helpers

pytestmark = pytest.mark.engine

N = 512
MOST_PANELS = 8

PROGRAM = f"""
import sys
import numpy
a = numpy.ones(({N}, {N}), numpy.float32)
b = numpy.full(({N}, {N}), 2, numpy.float32)
for _ in range(int(sys.argv[1])):
    c = a @ b
    assert (c == {2 * N}).all()
"""


def product(python: str, threads: int) -> tuple[int, int]:
    """Fp32 FLOP of the first product and of each later one, with so many BLAS threads."""
    env = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    counts = []
    for products in (0, 1, 3):
        counted = helpers.count([python, "-c", PROGRAM, str(products)], env=env)
        assert counted.run.code == 0, counted.run.stderr
        assert counted.record["complete"], counted.record["partial"]
        counts.append(counted.flop().get("fp32", 0))
    assert (counts[2] - counts[1]) % 2 == 0
    return counts[1] - counts[0], (counts[2] - counts[1]) // 2


def test_one_total_for_one_and_two_threads(record_property: Callable[[str, object], None]) -> None:
    helpers.need_machine()
    python = helpers.need_python("numpy")
    first, later = product(python, threads=1)
    assert first == later
    assert product(python, threads=2) == (first, later)
    # BLAS computes C := alpha A B + beta C. The kernels scale each panel of K by alpha as they add it to C (one multiply
    # or one fma for each element of C and panel); beta is 0 here, and C is filled with zeros instead of being scaled.
    extra = first - 2 * N**3
    record_property("flop", first)
    record_property("flop_of_alpha", extra)
    assert extra % N**2 == 0
    assert 0 <= extra // N**2 <= 2 * MOST_PANELS
