"""Counting inside this process: spans, figures, timing, misuse; on an engine that counts what a test says it executes."""

from __future__ import annotations

import pytest

import flopwatch
from flopwatch.calling import count, measure
from flopwatch.errors import UsageError
from tests.fake_engine import FLOP, FakeEngine, work


def names(counted: flopwatch.Count, axis: str = "span") -> dict[str, int]:
    return {row.name: sum(counted.record.flop(row.tally).values()) for row in counted.rows(axis)}


def test_a_block_is_counted() -> None:
    work(7)  # before: not counted
    with count(engine=FakeEngine()) as counted:
        work(5)
    work(9)  # behind: not counted
    assert counted.total == 5 * FLOP
    assert counted.flop == {"fp32": 5 * FLOP}
    assert counted.record.complete


def test_spans_are_rows_that_sum_to_the_total() -> None:
    with count(engine=FakeEngine()) as counted:
        work(1)
        with counted.span("load"):
            work(2)
            with counted.span("decode"):
                work(4)
            work(8)
        with counted.span("load"):
            work(16)
        work(32)
    assert names(counted) == {
        "load": (2 + 8 + 16) * FLOP,
        "load / decode": 4 * FLOP,
        "[no span]": (1 + 32) * FLOP,
    }


def test_a_span_ends_when_its_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), count(engine=FakeEngine()) as counted:
        with pytest.raises(KeyError), counted.span("fails"):
            work(1)
            raise KeyError
        work(2)
        raise ZeroDivisionError
    assert names(counted) == {"fails": 1 * FLOP, "[no span]": 2 * FLOP}


def test_what_the_engine_lost_makes_the_record_partial() -> None:
    engine = FakeEngine()
    engine.reasons.append("thread 7 could not be followed")
    with count(engine=engine) as counted:
        work(1)
    assert not counted.record.complete
    assert counted.record.partial == ("thread 7 could not be followed",)


def test_a_function_is_warmed_up_timed_and_counted_once() -> None:
    calls: list[int] = []

    def function() -> int:
        calls.append(1)
        work(3)
        return len(calls)

    measured = measure(function, warm_up=2, timed=3, engine=FakeEngine())
    assert len(calls) == 2 + 3 + 1
    assert measured.result == 2 + 3 + 1
    assert measured.total == 3 * FLOP
    assert len(measured.record.timed_seconds) == 3
    assert measured.record.seconds == sorted(measured.record.timed_seconds)[1]


def test_without_timing_there_is_no_time() -> None:
    assert measure(lambda: work(1), timed=0, engine=FakeEngine()).record.seconds is None


def test_misuse_is_a_sentence() -> None:
    counted = count(engine=FakeEngine())
    with pytest.raises(UsageError, match="has not ended yet"):
        _ = counted.total
    with pytest.raises(UsageError, match="lies inside its count"), counted.span("early"):
        pass
    with counted:
        pass
    with pytest.raises(UsageError, match="used already"), counted:
        pass
    with pytest.raises(UsageError, match="lies inside its count"), counted.span("late"):
        pass
    with pytest.raises(UsageError, match="layers cannot be told apart"), count("resnet18", engine=FakeEngine()):
        pass
