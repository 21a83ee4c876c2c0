"""From a processor to its kinds of cores and their events; and which counter "auto" takes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from flopwatch import counters
from flopwatch.counters import ANYTHING, Availability, Needs, hardware
from flopwatch.counters.hardware import HardwareCounter
from flopwatch.counters.hardware.policy import Policy
from flopwatch.counters.hardware.surroundings import Pmu, Surroundings
from flopwatch.errors import CannotMeasureError
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType
from flopwatch.processors import Kind, Processor
from tests.fake_kernel import FLAGS, SEEN, FakeKernel, policy, total_table

ABLE = next(name for name in pmu.names() if pmu.load(name).can == "yes" and pmu.load(name).isa == "x86_64")
UNABLE = next(name for name in pmu.names() if pmu.load(name).can == "no")
HYBRID = (Pmu("cpu_core", 4, (0, 1)), Pmu("cpu_atom", 10, (2, 3)))


def of(processor: Processor, seen: Surroundings, tmp_path: Path) -> Policy:
    return Policy(seen, FakeKernel(), lambda loop, rounds: None, FLAGS, "x86_64", tmp_path, find=lambda: processor)


def test_one_kind_of_core(tmp_path: Path) -> None:
    found = of(Processor(ABLE, (Kind("cpu", ABLE),)), SEEN, tmp_path)
    (kind,) = found.kinds
    assert kind.pmu == SEEN.pmus[0]
    assert kind.table.name == ABLE


def test_two_kinds_have_numbers_of_their_own(tmp_path: Path) -> None:
    seen = Surroundings(pmus=HYBRID)
    found = of(Processor("both", (Kind("cpu_core", ABLE, "0-1"), Kind("cpu_atom", ABLE, "2-3"))), seen, tmp_path)
    assert [kind.pmu.type for kind in found.kinds] == [4, 10]


def test_cores_that_are_all_offline(tmp_path: Path) -> None:
    seen = Surroundings(pmus=HYBRID[:1])
    found = of(Processor("both", (Kind("cpu_core", ABLE), Kind("cpu_atom", ABLE))), seen, tmp_path)
    with pytest.raises(CannotMeasureError, match=r"cpu_atom; their CPUs may be offline\. Bring the CPUs online again"):
        _ = found.kinds
    assert "may be offline" in HardwareCounter(found).available().reason


def test_a_core_without_such_an_event(tmp_path: Path) -> None:
    answer = HardwareCounter(of(Processor(UNABLE, (Kind("cpu", UNABLE),)), SEEN, tmp_path)).available()
    assert not answer.ok
    assert answer.reason[1:] == pmu.load(UNABLE).because[1:]
    assert "--counter instrumented" in answer.todo


def test_a_processor_that_is_not_known(tmp_path: Path) -> None:
    def find() -> Processor:
        raise CannotMeasureError("The floating-point events of this processor are not known.", seen="It is new.")

    found = Policy(SEEN, FakeKernel(), lambda loop, rounds: None, FLAGS, "x86_64", tmp_path, find=find)
    assert HardwareCounter(found).available().reason == "it is new."


def test_memory_that_may_not_be_executed(tmp_path: Path) -> None:
    def forbidden(loop: object, rounds: int) -> None:
        raise PermissionError(13, "Permission denied")

    found = policy(FakeKernel(), tmp_path)
    found.run = forbidden
    assert "no executable memory for the loops" in HardwareCounter(found).available().reason


class Instrumented:
    name = "instrumented"

    def available(self, needs: Needs = ANYTHING) -> Availability:
        return Availability(True)


def choose(monkeypatch: pytest.MonkeyPatch, counter: HardwareCounter, name: str, needs: Needs = ANYTHING) -> str:
    monkeypatch.setattr(hardware, "COUNTER", counter)
    monkeypatch.setattr("flopwatch.counters.instrumented.COUNTER", Instrumented())
    return counters.find(name, needs).name


def test_auto_takes_hardware_where_it_can_be_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = FLAGS - {"avx512_bf16"}
    good = HardwareCounter(policy(FakeKernel(), tmp_path / "a", flags=plain))
    assert choose(monkeypatch, good, "auto") == "hardware"
    assert choose(monkeypatch, good, "auto", Needs(by="symbol")) == "instrumented"
    assert choose(monkeypatch, good, "auto", Needs(dtypes=frozenset((DType.FP16,)))) == "instrumented"
    # This processor may compute in bf16, which the events do not see.
    bf16 = HardwareCounter(policy(FakeKernel(), tmp_path / "b"))
    assert choose(monkeypatch, bf16, "auto") == "instrumented"
    assert choose(monkeypatch, bf16, "auto", Needs(dtypes=frozenset((DType.FP32,)))) == "hardware"
    assert choose(monkeypatch, bf16, "hardware") == "hardware"
    total = HardwareCounter(policy(FakeKernel(total_table()), tmp_path / "c", flags=plain))
    assert choose(monkeypatch, total, "auto") == "instrumented"
    zero = HardwareCounter(policy(FakeKernel(model=lambda row, loop, flop: 0), tmp_path / "d", flags=plain))
    assert choose(monkeypatch, zero, "auto") == "instrumented"
    with pytest.raises(CannotMeasureError, match="hardware: calibration on The split core failed"):
        choose(monkeypatch, zero, "hardware")


def test_a_machine_without_a_pmu_is_seen_at_once() -> None:
    if hardware.surroundings.look().pmus:
        pytest.skip("this machine has a PMU")
    HardwareCounter().available()
    begin = time.perf_counter()
    for _ in range(10):
        assert not HardwareCounter().available().ok
    assert (time.perf_counter() - begin) / 10 < 0.005
    code = (
        "import sys, flopwatch.counters.hardware as h; h.COUNTER.available(); "
        "print('flopwatch.counters.hardware.calibration' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"
