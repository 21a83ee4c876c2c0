"""Places, shares and views of an explanation."""

from __future__ import annotations

import io
import json

import pytest

from flopwatch import reports
from flopwatch.errors import UsageError
from flopwatch.explaining import CAUSES, explain
from flopwatch.explanation_views import document, explain_sheet
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.record import Record, Shapes
from tests.unit.explaining.sides import asked, causes, lanes, needs, of, ran

ROWS, INNER, COLUMNS = 32, 64, 48
MAC, RESULTS = ROWS * INNER * COLUMNS, ROWS * COLUMNS
LINEAR = Shapes("aten::linear", 1, ((ROWS, INNER), (COLUMNS, INNER)), ((ROWS, COLUMNS),), mac=MAC)
VALUES = 4096


def test_an_operator_takes_up_what_the_estimate_has_under_other_names() -> None:
    ours = ran(lanes(fma=2 * MAC, add=2 * RESULTS), "aten::_fused", "block.attention")
    theirs = (
        asked(needs(fma=MAC), "aten::linear", LINEAR, layer="block.attention"),
        asked(needs(fma=MAC), "aten::matmul", LINEAR, layer="block.attention"),
    )
    found = of(ours, theirs)
    assert causes(found) == {"partial sums": 2 * RESULTS}
    assert [part.place for part in found.parts] == [("block.attention", "aten::_fused", "forward")]


def test_or_in_the_layers_below() -> None:
    ours = (
        ran(lanes(fma=2 * MAC, add=2 * RESULTS), "aten::_fused", "block"),
        ran(lanes(fma=MAC), "aten::linear", "block.other"),
    )
    theirs = (
        asked(needs(fma=MAC), "aten::linear", LINEAR, layer="block.one"),
        asked(needs(fma=MAC), "aten::linear", LINEAR, layer="block.two"),
        asked(needs(fma=MAC), "aten::linear", LINEAR, layer="block.other"),
        asked(needs(fma=MAC), "aten::linear", LINEAR, layer="blocks"),
    )
    found = of(ours, theirs)
    assert causes(found) == {"partial sums": 2 * RESULTS}
    assert found.unexplained == -2 * MAC
    assert {part.place.layer: part.gap for part in found.parts} == {
        "block": 2 * RESULTS,
        "block.other": 0,
        "blocks": -2 * MAC,
    }


def test_unexplained_work_of_opposite_sign_does_not_cancel() -> None:
    ours = (
        ran(lanes(mul=VALUES), "mine::one"),
        ran(lanes(fma=8 * VALUES), "aten::add"),
    )
    theirs = (
        asked(
            needs(add=8 * VALUES), "aten::add", Shapes("aten::add", 1, ((8 * VALUES,), (8 * VALUES,)), ((8 * VALUES,),))
        ),
        asked(needs(mul=VALUES), "mine::other", layer="elsewhere"),
    )
    found = of(ours, theirs)
    assert causes(found) == {"sums with a factor": 8 * VALUES}
    assert (found.gap, found.unexplained, found.missing) == (8 * VALUES, 0, 2 * VALUES)
    assert found.share == 1 - 2 / 8


def test_without_a_gap_all_is_explained() -> None:
    found = of(ran(lanes(fma=MAC), "aten::linear"), asked(needs(fma=MAC), "aten::linear", LINEAR))
    assert (found.gap, found.rows, found.share) == (0, (), 1)


def test_every_cause_says_what_it_means() -> None:
    assert all(meaning and not meaning.endswith(".") for meaning in CAUSES.values())


def test_what_hardware_counted_cannot_be_explained() -> None:
    tally = Tally.of(Operation.ANY, DType.ANY, instructions=VALUES)
    measured = Record(counter="hardware", cells=(ran(tally, "aten::linear"),))
    with pytest.raises(UsageError, match="cannot be explained"):
        explain(measured, Record(counter="estimate", cells=()))


def test_records_of_different_models_cannot_be_laid_side_by_side() -> None:
    one = Record(counter="instrumented", command=("net", "1x3x224x224", "fp32", "inference"), cells=())
    other = Record(counter="estimate", command=("net", "4x3x224x224", "fp32", "inference"), cells=())
    with pytest.raises(UsageError, match="not of the same thing"):
        explain(one, other)


def two() -> tuple[Record, Record]:
    ours = (ran(lanes(fma=MAC, add=2 * RESULTS), "aten::linear"), ran(lanes(mul=VALUES), "mine::twist", "twist"))
    theirs = (asked(needs(fma=MAC), "aten::linear", LINEAR),)
    return Record(counter="instrumented", cells=ours), Record(counter="estimate", cells=theirs)


def test_the_sheet_of_causes_sums_to_the_gap() -> None:
    sheet = explain_sheet(explain(*two()), name="net")
    gap = 2 * RESULTS + VALUES
    assert sheet.title == f"net: {2 * MAC + gap:,} FLOP measured, {2 * MAC:,} estimated: a gap of {gap:+,}"
    assert [row[:4] for row in sheet.rows] == [
        ("partial sums", 2 * RESULTS, 2 * RESULTS / gap, "linear in net"),
        ("unexplained", VALUES, VALUES / gap, "twist in twist"),
    ]
    assert sheet.notes == (
        f"explained: {100 * 2 * RESULTS / gap:.2f} % of the gap; rows sum to it: {gap:+,} FLOP",
        f"unexplained, place by place {VALUES:,} FLOP: twist twist {VALUES:+,}",
    )
    out = io.StringIO()
    reports.find("table").render(sheet, out)
    assert "partial sums" in out.getvalue()


@pytest.mark.parametrize("by", ["layer", "op"])
def test_the_sheets_of_places_sum_to_the_gap(by: str) -> None:
    explanation = explain(*two())
    sheet = explain_sheet(explanation, by)
    assert sum(row[1] for row in sheet.rows if isinstance(row[1], int)) == explanation.gap
    assert [row[3] for row in sheet.rows] == [f"unexplained {VALUES:+,}", f"partial sums {2 * RESULTS:+,}"]


def test_the_document_is_json_with_signed_sizes() -> None:
    found = json.loads(json.dumps(document(explain(*two()))))
    gap = 2 * RESULTS + VALUES
    assert found["gap"] == gap == found["measured_flop"] - found["estimated_flop"]
    assert (found["unexplained"], found["missing"]) == (VALUES, VALUES)
    assert found["explained"] == 1 - VALUES / gap
    (cause,) = found["causes"]
    assert (cause["cause"], cause["flop"]) == ("partial sums", 2 * RESULTS)
    assert cause["places"] == [{"layer": "net", "op": "aten::linear", "function": "forward"}]
    assert sum(place["gap"] for place in found["places"]) == gap
