"""Calibration passes a PMU that counts right, and names what is wrong with one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flopwatch.counters import Needs
from flopwatch.counters.hardware import HardwareCounter, cache
from flopwatch.counters.hardware.calibration import Calibration, calibrate
from flopwatch.counters.hardware.loops import Loop, runnable
from flopwatch.counters.hardware.plan import Kind
from flopwatch.counters.hardware.surroundings import Pmu, Surroundings
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.pmu import PmuRow
from tests.fake_kernel import FLAGS, SEEN, FakeKernel, Model, kind, policy, right, split_table, total_table

GUEST = Surroundings(pmus=SEEN.pmus, hypervisor=True)


def found(kernel: FakeKernel, of: Kind | None = None, seen: Surroundings = SEEN) -> Calibration:
    return calibrate(kernel, of or kind(kernel.table), runnable(FLAGS, "x86_64"), kernel.run, seen=seen)


def test_a_pmu_that_counts_right_passes() -> None:
    kernel = FakeKernel()
    answer = found(kernel)
    assert answer.passed and answer.counters == 8
    assert "minimum and maximum are counted" in answer.facts
    assert "lanes that a mask switched off are counted in full" in answer.facts
    assert "bf16 dot products are not counted" in answer.facts
    assert "x87 operations are not counted" in answer.facts
    assert not kernel.events


def test_one_total_for_all_datatypes_passes() -> None:
    assert found(FakeKernel(total_table())).passed


def broken(change: Model) -> Calibration:
    return found(FakeKernel(model=change))


def test_half_a_virtual_pmu_stays_at_zero() -> None:
    kernel = FakeKernel(model=lambda row, loop, flop: 0)
    answer = found(kernel, seen=GUEST)
    assert answer.wrong == (
        "the events can be opened, but stay at 0 whatever runs: the virtual PMU of this machine is half there.",
    )
    assert "do not count on this processor" in found(kernel).wrong[0]


def test_a_wrong_unit_mask_is_named() -> None:
    def wrong(row: PmuRow, loop: Loop, flop: int) -> int:
        return 0 if row.name == "256B_FP32" else right(row, loop, flop)

    sentence = broken(wrong).wrong[0]
    assert sentence.startswith("fp32 add 256: nothing is counted of")
    assert "wrong unit mask" in sentence
    assert "256B_FP32 (r4c7: 0)" in sentence


@pytest.mark.parametrize(("factor", "words"), [(2, "twice of"), (0.5, "half of"), (0.7, "FLOP are counted instead of")])
def test_counters_that_are_not_merged(factor: float, words: str) -> None:
    answer = broken(lambda row, loop, flop: int(right(row, loop, flop) * factor))
    assert not answer.passed
    assert words in answer.wrong[0]


def test_datatypes_that_are_taken_for_each_other() -> None:
    def swapped(row: PmuRow, loop: Loop, flop: int) -> int:
        if loop.dtype not in (DType.FP32, DType.FP64) or row.dtype is loop.dtype:
            return 0
        return flop if row.name.startswith("SCALAR") else 0

    assert "it is counted as fp64" in broken(swapped).wrong[0]


def test_what_has_no_flop_must_not_count() -> None:
    def overcounting(row: PmuRow, loop: Loop, flop: int) -> int:
        return 9999 if loop.operation is None and row.name == "SCALAR_FP32" else right(row, loop, flop)

    assert any("convert 128: counted as 9,999 FLOP" in each for each in broken(overcounting).wrong)


def test_makers_differ_about_minimum_and_masks_and_that_is_a_fact() -> None:
    def other(row: PmuRow, loop: Loop, flop: int) -> int:
        if loop.operation is Operation.MINMAX:
            return 0
        return right(row, loop, flop) // (2 if loop.masked else 1)

    answer = broken(other)
    assert answer.passed
    assert "minimum and maximum are not counted" in answer.facts
    assert "masked instructions count as 50% of their lanes; the loops have half of them switched on" in answer.facts


def test_a_stolen_counter_makes_smaller_sets() -> None:
    answer = found(FakeKernel(counters=3), kind(split_table(4)))
    assert answer.passed and answer.counters == 3
    assert "3 of 4 counters can be used; something else holds the others" in answer.facts


def test_no_counter_left() -> None:
    answer = found(FakeKernel(counters=0), seen=Surroundings(pmus=SEEN.pmus, watchdog=True))
    assert "was on a counter for 0% of the time only" in answer.wrong[0]
    assert "kernel.nmi_watchdog=0" in answer.todo


def test_what_others_hold_is_not_kept(tmp_path: Path) -> None:
    kernel = FakeKernel(counters=0)
    assert not HardwareCounter(policy(kernel, tmp_path)).available().ok
    assert not list(tmp_path.iterdir())
    kernel.counters = 8
    assert HardwareCounter(policy(kernel, tmp_path)).available().ok
    assert len(list(tmp_path.iterdir())) == 1


def test_a_kind_of_core_that_may_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel()
    elsewhere = kind(kernel.table, Pmu("cpu_atom", 10, (10_000,)))
    answer = found(kernel, elsewhere)
    assert answer.passed and not answer.lasting and not kernel.opened
    assert answer.facts == ("not calibrated: none of its CPUs may be used by this program",)

    def offline(pid: int, cpus: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 10_000})
    monkeypatch.setattr("os.sched_setaffinity", offline)
    assert found(kernel, elsewhere).facts == answer.facts


def test_paired_events_within_their_budget() -> None:
    kernel = FakeKernel(split_table(6, counters_each=2), counters=6)
    answer = found(kernel)
    assert answer.passed and answer.counters == 6


def test_it_is_kept_until_something_changes(tmp_path: Path) -> None:
    kernel = FakeKernel()
    assert HardwareCounter(policy(kernel, tmp_path)).available().ok
    opened = len(kernel.opened)
    assert opened
    assert HardwareCounter(policy(kernel, tmp_path)).available().ok
    assert len(kernel.opened) == opened
    newer = Surroundings(pmus=SEEN.pmus, release="9.9")
    assert HardwareCounter(policy(kernel, tmp_path, newer)).available().ok
    assert len(kernel.opened) == 2 * opened


def test_a_failure_is_kept_too_and_said(tmp_path: Path) -> None:
    kernel = FakeKernel(model=lambda row, loop, flop: 0)
    for _ in range(2):
        answer = HardwareCounter(policy(kernel, tmp_path)).available()
        assert answer.reason.startswith("calibration on The split core failed: the events can be opened, but stay at 0")


def test_a_cache_that_is_damaged_or_cannot_be_written(tmp_path: Path) -> None:
    cache.save("k", (Calibration(4),), tmp_path)
    assert cache.load("k", tmp_path) == (Calibration(4),)
    (tmp_path / "calibration-k.json").write_text("{")
    assert cache.load("k", tmp_path) is None
    (tmp_path / "file").write_text("")
    cache.save("k", (Calibration(4),), tmp_path / "file")
    assert cache.load("k", tmp_path / "file") is None


def test_where_the_cache_is() -> None:
    assert cache.folder({"FLOPWATCH_CACHE": "/a"}) == Path("/a")
    assert cache.folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/flopwatch")
    assert cache.folder({}) == Path.home() / ".cache/flopwatch"


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (Needs(by="symbol"), "do not say in which symbol"),
        (Needs(lanes="active"), "count lanes that a mask switched off"),
        (Needs(convention="arithmetic"), "count lanes that a mask switched off"),
        (Needs(convention="arithmetic", lanes="full"), "do not tell minimum and maximum"),
        (Needs(dtypes=frozenset((DType.BF16,))), "The split core cannot tell bf16 from other datatypes"),
        (Needs(apart=True), "cannot tell bf16"),
    ],
)
def test_what_events_cannot_do(needs: Needs, reason: str, tmp_path: Path) -> None:
    answer = HardwareCounter(policy(FakeKernel(), tmp_path)).available(needs)
    assert not answer.ok
    assert reason in answer.reason
    assert "--counter instrumented" in answer.todo


def test_datatypes_that_can_be_told_apart(tmp_path: Path) -> None:
    plain = FLAGS - {"avx512_bf16"}
    counter = HardwareCounter(policy(FakeKernel(), tmp_path, flags=plain))
    assert counter.available(Needs(apart=True)).ok
    assert counter.available(Needs(dtypes=frozenset((DType.FP32,)))).ok


def test_a_core_with_one_total_counts_only_if_nobody_asks_for_datatypes(tmp_path: Path) -> None:
    counter = HardwareCounter(policy(FakeKernel(total_table()), tmp_path))
    assert counter.available().ok
    answer = counter.available(Needs(dtypes=frozenset((DType.FP64,))))
    assert "cannot tell fp64" in answer.reason and "one total for all precisions" in answer.reason


def test_fewer_runs_than_sets_need_a_total_that_tells_nothing_apart(tmp_path: Path) -> None:
    counter = HardwareCounter(policy(FakeKernel(split_table(4)), tmp_path, flags=FLAGS - {"avx512_bf16"}))
    assert counter.available(Needs(apart=True)).ok
    answer = counter.available(Needs(apart=True, once=True))
    assert answer.reason == "they need 2 runs with 4 counters."
    assert "leave --no-time out" in answer.todo
