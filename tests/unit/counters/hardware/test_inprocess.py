"""Labels inside this process: every count belongs to exactly one, on every thread; with the kernel's events for real."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import flopwatch
from flopwatch.counters import Needs, RawEvent
from flopwatch.counters.hardware import HardwareCounter
from flopwatch.counters.hardware.inprocess import Engine
from flopwatch.counters.hardware.perf_event import Linux
from flopwatch.counters.hardware.plan import plan, raw_plan
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops.operations import DType
from flopwatch.labelled import Counting
from flopwatch.scope import Scope
from tests.fake_kernel import SEEN, FakeKernel, kind, policy, split_table

SCALAR_FP32, SCALAR_FP64 = (
    next(row.code for row in split_table().rows if row.name == name) for name in ("SCALAR_FP32", "SCALAR_FP64")
)


def counting(kernel: FakeKernel) -> Counting:
    return Counting(Engine(plan([kind(kernel.table)]), kernel, SEEN))


def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flopwatch.counters.hardware.opening.os.listdir", lambda path: ["1"])


def test_labels_get_what_was_counted_between_their_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    one_thread(monkeypatch)
    kernel = FakeKernel()
    with (counted := counting(kernel)) as here:
        kernel.tick({SCALAR_FP32: 1})
        with here.scopes.enter(Scope(layer="a")):
            kernel.tick({SCALAR_FP32: 10})
            with here.scopes.enter(Scope(layer="b")):
                kernel.tick({SCALAR_FP64: 100})
            kernel.tick({SCALAR_FP32: 1000})
    by_layer = {counted.scopes.scope(label).layer: each.tally.flop() for label, each in counted.work.items()}
    assert by_layer == {"": {DType.FP32: 1}, "a": {DType.FP32: 1010}, "b": {DType.FP64: 100}}
    assert not counted.partial and counted.counter == "hardware" and not kernel.events


def test_a_counter_that_overflows_between_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    one_thread(monkeypatch)
    kernel = FakeKernel()
    with (counted := counting(kernel)):
        for event in kernel.events.values():
            event.counted = 2**64 - 5
        counted._engine.settle(0)
        counted.work.clear()
        for event in kernel.events.values():
            event.counted = 3
        counted._engine.settle(1)
    assert all(reading.count == 8 for each in counted.readings if each.label == 1 for reading in each.readings.readings)


def test_shared_counters_make_it_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    one_thread(monkeypatch)
    kernel = FakeKernel(counters=2)
    with (counted := counting(kernel)):
        kernel.tick({SCALAR_FP32: 8})
    assert "was on a counter for 25% of the time only" in counted.partial[0]
    assert "so its count is too low" in counted.partial[0]


def test_more_than_one_run_is_refused() -> None:
    with pytest.raises(CannotMeasureError, match="need 2 runs"):
        counting(FakeKernel(split_table(4))).__enter__()


def test_one_count_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one_thread(monkeypatch)
    here = counting(FakeKernel())
    with here, pytest.raises(UsageError, match="under way already"):
        here._engine.attach_threads()
    with pytest.raises(UsageError, match="not under way"):
        here._engine.settle(0)


def test_a_record_of_spans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one_thread(monkeypatch)
    kernel = FakeKernel()
    engine = HardwareCounter(policy(kernel, tmp_path)).engine()
    with flopwatch.count(engine=engine) as counted, counted.span("work"):
        kernel.tick({SCALAR_FP32: 7})
    assert counted.total == 7
    assert next((row.name, row.tally.flop()) for row in counted.rows("span")) == ("work", {DType.FP32: 7})
    record = counted.record
    assert record.counter == "hardware" and record.complete
    assert ("SCALAR_FP32", "1c7", 7, 1) in [(each.name, each.code, each.count, each.weight) for each in record.events]
    assert any("calibrated here" in note for note in record.notes)


def test_threads_for_real() -> None:
    needs = Needs(events=(RawEvent("page-faults", 0, 1),))
    answer = HardwareCounter().available(needs)
    if not answer.ok:
        pytest.skip(f"perf_event_open does not work here: {answer.reason}")
    pages = 2000
    touch = f"m = __import__('mmap').mmap(-1, {pages} * 4096)\nfor i in range({pages}): m[i * 4096] = 1"
    go, done = threading.Event(), threading.Event()
    older = threading.Thread(target=lambda: (go.wait(), exec(touch, {}), done.set()))
    older.start()
    with (counted := Counting(Engine(raw_plan(needs.events, (), None), Linux(), SEEN))) as here:
        with here.scopes.enter(Scope(layer="mine")):
            exec(touch, {})
        with here.scopes.enter(Scope(layer="theirs")):
            go.set()
            done.wait()
            younger = threading.Thread(target=lambda: exec(touch, {}))
            younger.start()
            younger.join()
    older.join()
    rows = {counted.scopes.scope(label).layer: sum(each.tally.flop().values()) for label, each in counted.work.items()}
    assert pages <= rows["mine"] < pages + 300
    assert 2 * pages <= rows["theirs"] < 2 * pages + 300
    assert len({each.thread for each in counted.readings}) == len(counted.thread_names) >= 2
