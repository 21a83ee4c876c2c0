from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from flopwatch.attribution import AXES, fold_processes
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.record import SCHEMA, Process, Record, Unknown, cells_of, decode, document, encode, load, save
from tests.fakes import MASKED_FMA, block, image

RUNS, ON = 10, 35


@pytest.fixture
def record() -> Record:
    folded = fold_processes([image(block(runs=RUNS), block(MASKED_FMA, RUNS, thread=2, active=((0, ON),)))], ["1 axpy"])
    return Record(
        counter="fake",
        command=("axpy", "1000"),
        processes=(Process("1 axpy", 1), Process("2 true", 2)),
        unknown=(Unknown("vnew", 1),),
        vector_instructions=folded.vector_instructions + 1,
        seconds=0.5,
        cells=cells_of(folded.cells),
    )


def test_a_record_is_the_same_after_saving(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    save(record, path, by="symbol")
    again = load(path)
    assert again.tally == record.tally
    assert again.by_place == record.by_place
    assert encode(again, "thread") == encode(record, "thread")


def test_the_keys_that_machines_may_rely_on(record: Record) -> None:
    found = json.loads(encode(record, "thread"))
    wanted = {"schema": SCHEMA, "counter": "fake", "complete": True, "exit_code": 0, "seconds": 0.5, "op": {}}
    assert wanted.items() <= found.items()
    assert found["flop"] == {"fp32": RUNS + RUNS + 2 * 16 * RUNS}
    assert found["unknown"] == [{"name": "vnew", "count": 1}]
    assert found["coverage"] == 1 - 1 / (3 * RUNS + 1)
    fma = next(each for each in found["operations"] if each["operation"] == "fma")
    assert fma == {
        "operation": "fma",
        "dtype": "fp32",
        "lanes": 16,
        "masked": True,
        "count": RUNS,
        "active_lanes": ON,
        "flop": 2 * 16 * RUNS,
        "op": 0,
    }
    assert [(row["name"], row["flop"]["fp32"]) for row in found["rows"]] == [("2", 2 * 16 * RUNS), ("1", 2 * RUNS)]
    assert "rows" not in document(record)


def test_the_rows_of_each_axis_sum_to_the_total(record: Record) -> None:
    for axis in AXES:
        rows = document(record, axis)["rows"]
        assert sum(sum(row["flop"].values()) for row in rows) == sum(document(record)["flop"].values())


def test_a_process_without_work_has_a_row(record: Record) -> None:
    assert [row.name for row in record.rows("process")] == ["1 axpy", "2 true"]


def test_the_convention_decides_on_lanes_until_told_otherwise(record: Record) -> None:
    full, active = 2 * RUNS + 2 * 16 * RUNS, 2 * RUNS + 2 * ON
    assert sum(record.flop().values()) == full
    assert sum(record.under(lanes="active").flop().values()) == active
    arithmetic = decode(encode(record)).under(convention="arithmetic")
    assert sum(arithmetic.flop().values()) == active
    assert sum(arithmetic.under(lanes="full").flop().values()) == full


def test_a_record_without_vector_instructions_is_covered() -> None:
    assert Record(counter="fake", cells=()).coverage == 1


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is not a flopwatch record"),
        (b"hello", "is not a flopwatch record"),
        (b"{}", "is not a flopwatch record"),
        (b"\xff\xfe", "is not a flopwatch record"),
        (json.dumps({"schema": SCHEMA + 1}).encode(), "was written by a later flopwatch"),
        (json.dumps({"schema": SCHEMA}).encode(), "is a damaged flopwatch record"),
        (json.dumps({"schema": SCHEMA, "counter": "x", "cells": 3}).encode(), "is a damaged flopwatch record"),
    ],
)
def test_a_file_that_is_no_record_is_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        decode(data, "'x.json'")


def test_damaged_values_are_found_when_reading(record: Record) -> None:
    for change in ({"convention": "mine"}, {"cells": [{"operations": [["cube", "fp32", 1, False, 1]]}]}):
        broken = msgspec.json.encode(document(record) | change)
        with pytest.raises(UsageError, match="damaged"):
            decode(broken)


def test_a_missing_file_and_a_full_disk_are_sentences(record: Record, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(CannotMeasureError, match="could not be written to '/dev/full': No space left"):
        save(record, "/dev/full")
