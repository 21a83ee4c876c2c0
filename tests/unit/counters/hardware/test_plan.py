from __future__ import annotations

from dataclasses import replace

import pytest

from flopwatch.counters import RawEvent
from flopwatch.counters.hardware.naming import parse
from flopwatch.counters.hardware.perf_event import TYPE_SOFTWARE
from flopwatch.counters.hardware.plan import Kind, counters_of, groups, plan, raw_plan, told_apart
from flopwatch.counters.hardware.surroundings import Pmu
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType
from flopwatch.flops.pmu import Budget
from tests.fake_kernel import kind, split_table, total_table


@pytest.mark.parametrize(
    ("counters", "each", "sizes"), [(8, 1, [8]), (4, 1, [4, 4]), (3, 1, [3, 3, 2]), (6, 2, [3, 3, 2])]
)
def test_sets_fit_on_the_counters(counters: int, each: int, sizes: list[int]) -> None:
    made = plan([kind(split_table(counters, each))])
    assert [len(run) for run in made.runs] == sizes
    assert not made.whole
    assert len({event.name for run in made.runs for event in run}) == 8


def test_an_event_that_takes_more_than_there_is() -> None:
    with pytest.raises(CannotMeasureError, match=r"It takes 2 counters, and 1 can be used"):
        groups(Kind(Pmu("cpu", 4), total_table(), 1), total_table().rows)


def test_one_run_only() -> None:
    with pytest.raises(CannotMeasureError, match="They need 2 runs with 4 counters"):
        plan([kind(split_table(4))], once=True)
    assert plan([kind(total_table())], once=True).whole


def test_events_of_which_one_at_a_time_can_be_counted() -> None:
    table = split_table()
    of = kind(
        type(table)(
            **{**{name: getattr(table, name) for name in table.__struct_fields__}, "budget": Budget(8, single=(0xC7,))}
        )
    )
    assert [len(group) for group in groups(of, of.table.rows)] == [1] * 8


def test_counters_without_a_sibling() -> None:
    assert counters_of(Budget(4, alone=8), alone=True) == 8
    assert counters_of(Budget(4, alone=8), alone=False) == 4
    assert counters_of(Budget(6), alone=True) == 6


@pytest.mark.parametrize("name", [name for name in pmu.names() if pmu.load(name).can != "no"])
def test_every_table_makes_a_plan(name: str) -> None:
    table = pmu.load(name)
    assert table.sets
    of = Kind(Pmu("cpu", 4), table, table.budget.counters)
    made = plan([of])
    for run in made.runs:
        assert 0 < sum(event.counters for event in run) <= table.budget.counters
    assert {event.name for run in made.runs for event in run} == {row.name for row in table.apart()}


def test_what_can_be_told_apart() -> None:
    made = plan([kind()])
    assert told_apart(made, {DType.FP32, DType.FP64}) is None
    assert told_apart(made, {DType.BF16}) is DType.BF16
    assert told_apart(plan([kind(total_table())]), {DType.FP32}) is DType.FP32
    both = plan([kind(), kind(total_table(), Pmu("cpu_atom", 10))])
    assert told_apart(both, {DType.FP32}) is DType.FP32


def test_events_as_they_are_typed() -> None:
    assert parse("r02c7,r08C7=4") == (RawEvent("r02c7", 0x2C7), RawEvent("r08C7", 0x8C7, 4))
    assert parse("r02c7:u,page-faults") == (RawEvent("r02c7", 0x2C7), RawEvent("page-faults"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cycles", "no event 'cycles'"),
        ("", "no event ''"),
        ("r02c7=x", "'x' is no weight for the event r02c7"),
        ("r02c7=-1", "is no weight"),
        ("r02c7,r02c7=2", "named twice"),
    ],
)
def test_what_is_no_event(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse(text)


def test_weights_of_events_that_were_named() -> None:
    known = split_table()
    made = raw_plan(parse("r8c7,r2c7=99,r1234,task-clock"), [Pmu("cpu", 4)], known)
    (run,) = made.runs
    assert [(event.config, event.type) for event in run] == [(0x8C7, 4), (0x2C7, 4), (0x1234, 4), (1, TYPE_SOFTWARE)]
    rows = {row.name: row for row in made.kinds[0].table.rows}
    assert rows["r8c7"].weight == known.by_code[0x8C7].weight == 16
    assert rows["r8c7"].dtype is DType.FP32
    assert (rows["r2c7"].weight, rows["r2c7"].dtype) == (99, DType.ANY)
    assert rows["r1234"].free == "no weight was given for it"
    assert made.kind(replace(run[0], pmu="?")) is made.kinds[0]
