"""Three ways to know what a kernel computes agree: its closed form, the instrumented counter and, where there is one, the PMU.

pytest -m pmu tests/test_agreement.py      # on a machine with a PMU
"""

from __future__ import annotations

import platform
import sys
import textwrap
from collections.abc import Callable

import pytest

import flopwatch
from flopwatch.counters import Needs
from flopwatch.counters.hardware import COUNTER, surroundings
from flopwatch.counters.hardware.calibration import TOLERANCE
from flopwatch.counters.hardware.loops import Loop, Runner, runnable
from flopwatch.flops.convention import PMU
from flopwatch.flops.operations import DType
from flopwatch.measuring import measure_command

ROUNDS = 20_000
NOISE = 1000  # FLOP of the interpreter around a loop
LOOPS = runnable(surroundings.processor_flags())
BASIC = [loop for loop in LOOPS if loop.basic]


def expected(loop: Loop) -> int:
    return sum(loop.tally(ROUNDS).flop(PMU, "full").values())


def close(measured: int, loop: Loop) -> bool:
    return abs(measured - expected(loop)) <= expected(loop) // TOLERANCE + NOISE


def by_span(counter: str, loops: list[Loop] | tuple[Loop, ...]) -> dict[str, int]:
    run = Runner()
    for loop in loops:
        run.prepare(loop)
    with flopwatch.count(counter=counter) as counted:
        for loop in loops:
            with counted.span(loop.name):
                run(loop, ROUNDS)
    assert counted.record.complete, counted.record.partial
    assert counted.record.counter == counter
    return {row.name: sum(row.tally.flop(PMU, "full").values()) for row in counted.rows("span")}


@pytest.fixture
def pmu() -> None:
    """Skips, saying what is missing, where hardware cannot count."""
    answer = COUNTER.available()
    if not answer.ok:
        pytest.skip(f"no PMU to agree with: {answer.reason}")


@pytest.mark.engine
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instrumented counter needs x86-64")
def test_instrumented_and_closed_form() -> None:
    found = by_span("instrumented", LOOPS)
    for loop in LOOPS:
        assert close(found.get(loop.name, 0), loop), loop.name


@pytest.mark.pmu
@pytest.mark.usefixtures("pmu")
def test_hardware_and_closed_form() -> None:
    found = by_span("hardware", BASIC)
    for loop in BASIC:
        assert close(found.get(loop.name, 0), loop), loop.name


@pytest.mark.pmu
@pytest.mark.engine
@pytest.mark.usefixtures("pmu")
def test_hardware_and_instrumented() -> None:
    hardware, instrumented = by_span("hardware", BASIC), by_span("instrumented", BASIC)
    for loop in BASIC:
        assert abs(hardware[loop.name] - instrumented[loop.name]) <= expected(loop) // TOLERANCE + NOISE, loop.name


MATMUL = """
    import numpy as np
    n = 512
    a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    for _ in range(20):
        a @ b
"""


@pytest.mark.pmu
@pytest.mark.engine
@pytest.mark.usefixtures("pmu")
@pytest.mark.parametrize("threads", [1, 8])
def test_a_matrix_product_on_all_its_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """M30: the count may not depend on the number of threads."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", str(threads))
    command = [sys.executable, "-c", textwrap.dedent(MATMUL)]
    totals = {
        counter: sum(measure_command(command, counter=counter, timed=False).flop().values())
        for counter in ("hardware", "instrumented")
    }
    product = 20 * 2 * 512**3
    for total in totals.values():
        assert product <= total < product * 1.05
    assert abs(totals["hardware"] - totals["instrumented"]) < product / 100


@pytest.mark.pmu
@pytest.mark.usefixtures("pmu")
def test_datatypes_are_told_apart_where_the_core_can() -> None:
    needs = Needs(dtypes=frozenset((DType.FP32, DType.FP64)))
    if not (answer := COUNTER.available(needs)).ok:
        pytest.skip(f"this core cannot: {answer.reason}")
    run: Callable[[Loop, int], None] = Runner()
    for loop in BASIC:
        run(loop, 1)
        with flopwatch.count(counter="hardware") as counted:
            run(loop, ROUNDS)
        assert close(counted.flop.get(loop.dtype or DType.ANY, 0), loop), loop.name
