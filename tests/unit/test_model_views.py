"""Estimate and measurement in one table: sums, columns, tree, and what is said below."""

from __future__ import annotations

import io

import pytest

from flopwatch import model_views, reports
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import OUTSIDE, ROOT
from flopwatch.record import Calls, Cell, Layer, Memory, Record, Unknown, decode, ops_of
from flopwatch.record.storing import document as stored
from flopwatch.record.storing import encode
from flopwatch.reports.table import WIDTH

PRODUCTS, PIXELS, GENERATED = 4_089_184_256, 802_816, 1_000
LAYERS = (
    Layer(ROOT, "Net"),
    Layer("stem", "Conv2d", 9408, 4 * 9408),
    Layer("body", "Sequential"),
    Layer("body.0", "Linear", 2_048_000, 4 * 2_048_000),
    Layer("body.1", "ReLU"),
    Layer("body.2", "Identity"),
)


def tally(*parts: tuple[Operation, int]) -> Tally:
    return Tally.total(Tally.of(operation, DType.FP32, instructions=count) for operation, count in parts)


def cell(layer: str, op: str, work: Tally, *, mac: int = 0, function: str = "forward", padding: int = 0) -> Cell:
    return Cell(
        ops_of(work), layer=layer, op=op, function=function, calls=1, mac=mac, padding=padding, read=800, written=200
    )


FMA, ADD, MINMAX = Operation.FMA, Operation.ADD, Operation.MINMAX
ESTIMATE = Record(
    counter="estimate",
    command=("net", "1x3x224x224", "fp32", "inference"),
    subject="model",
    layers=LAYERS,
    calls=Calls(4, 2, 1, 5000, 1000),
    memory=Memory(3_211_264, "stem", 4 * 2_057_408, 8),
    unknown=(Unknown("lib::mystery", 1, ("body.2",)),),
    cells=(
        cell("stem", "aten::conv2d", tally((FMA, PRODUCTS)), mac=PRODUCTS, padding=1000),
        cell("body.0", "aten::linear", tally((FMA, PIXELS), (ADD, 10)), mac=PIXELS),
        cell("body.1", "aten::relu", tally((MINMAX, PIXELS))),
        cell("body.2", "lib::mystery", Tally()),
    ),
)
MEASURED = Record(
    counter="instrumented",
    command=ESTIMATE.command,
    subject="model",
    layers=LAYERS,
    vector_instructions=1,
    estimate=ESTIMATE,
    cells=(
        Cell(
            ops_of(Tally.of(FMA, DType.FP32, lanes=16, instructions=(PRODUCTS - 1000) // 16)),
            layer="stem",
            op="aten::conv2d",
            function="forward",
        ),
        Cell(ops_of(tally((MINMAX, PIXELS))), layer="body.1", op="aten::relu", function="forward"),
        Cell(ops_of(tally((ADD, 7))), layer=OUTSIDE, op="", function="forward"),
    ),
)
TOTAL = 2 * PRODUCTS + 2 * PIXELS + 10 + PIXELS


def text_of(sheet: model_views.sheets.Sheet, format: str = "table") -> str:
    out = io.StringIO()
    reports.find(format).render(sheet, out)
    return out.getvalue()


def test_an_estimate_has_a_row_for_each_layer_that_does_something() -> None:
    sheet = model_views.sheet(ESTIMATE)
    assert sheet.rows == (
        ("stem", "Conv2d", 9408, PRODUCTS, 2 * PRODUCTS),
        ("body.0", "Linear", 2_048_000, PIXELS, 2 * PIXELS + 10),
        ("body.1", "ReLU", 0, 0, PIXELS),
    )
    assert sheet.title == f"net: {PRODUCTS + PIXELS:,} MAC, {TOTAL:,} FLOP estimated, 2,057,408 parameters"
    assert sheet.notes[0] == f"rows sum to the total: {PRODUCTS + PIXELS:,} MAC, {TOTAL:,} FLOP"


def test_mac_and_flop_are_columns_of_their_own() -> None:
    assert [column.heading for column in model_views.sheet(ESTIMATE).columns] == [
        "layer",
        "kind",
        "params",
        "MAC",
        "FLOP",
    ]
    assert [column.heading for column in model_views.sheet(MEASURED).columns] == [
        "layer", "MAC", "estimated [FLOP]", "measured [FLOP]", "ratio",
    ]  # fmt: skip


def test_a_measured_row_has_its_ratio_and_only_where_there_is_one() -> None:
    rows = {row[0]: row for row in model_views.sheet(MEASURED).rows}
    done = 16 * ((PRODUCTS - 1000) // 16)
    assert rows["stem"] == ("stem", PRODUCTS, 2 * PRODUCTS, 2 * done, done / PRODUCTS)
    assert rows["body.1"][3:] == (PIXELS, 1.0)
    assert rows[OUTSIDE][2:] == (0, 7, None), "nothing was estimated there"


def test_a_tree_has_the_work_of_the_layers_below() -> None:
    sheet = model_views.sheet(ESTIMATE, tree=True)
    assert [(row[0], row[3]) for row in sheet.rows] == [
        (ROOT, PRODUCTS + PIXELS),
        ("  stem", PRODUCTS),
        ("  body", PIXELS),
        ("    0", PIXELS),
        ("    1", 0),
    ]
    assert sheet.rows[0][2] == 2_057_408


def test_a_tree_of_one_level() -> None:
    sheet = model_views.sheet(ESTIMATE, tree=True, depth=1)
    assert [row[0] for row in sheet.rows] == [ROOT, "  stem", "  body"]


@pytest.mark.parametrize("by", model_views.AXES)
@pytest.mark.parametrize("record", [ESTIMATE, MEASURED], ids=["estimate", "measured"])
def test_every_axis_sums_to_the_total(by: str, record: Record) -> None:
    document = model_views.document(record, by)
    for figure in ("mac", "flop", "read", "written", "calls", "padding_mac"):
        assert sum(row[figure] for row in document["rows"]) == document["total"][figure]
    assert document["total"]["flop"] == TOTAL
    if record is MEASURED:
        assert sum(row["measured_flop"] for row in document["rows"]) == document["total"]["measured_flop"]


def test_columns_by_operation_are_flop_and_sum_to_it() -> None:
    sheet = model_views.sheet(ESTIMATE, columns="operations")
    assert [column.heading for column in sheet.columns] == ["layer", "add [FLOP]", "fma [FLOP]", "minmax [FLOP]"]
    assert sum(sum(row[1:]) for row in sheet.rows) == TOTAL  # type: ignore[arg-type, misc]


def test_bytes_and_intensity() -> None:
    rows = {row[0]: row[1:] for row in model_views.sheet(ESTIMATE, columns="bytes").rows}
    assert rows["stem"] == (800, 200, 2 * PRODUCTS / (800 + 200))


def test_what_is_unknown_is_said_loudly() -> None:
    (line,) = [note for note in model_views.sheet(ESTIMATE).notes if note.startswith("coverage")]
    assert line == (
        "coverage: 7 operator calls: 4 counted, 2 free, 1 UNKNOWN, which are not in the figures and handle 20.0 % of the"
        " bytes: lib::mystery (1 times, in body.2)"
    )
    assert ESTIMATE.coverage == 1 - 1 / 7


def test_memory_and_padding_are_said() -> None:
    notes = model_views.sheet(ESTIMATE).notes
    assert "of the MAC, an implementation may leave out 1,000 on padding" in notes
    assert f"memory: parameters {4 * 2_057_408:,} B, buffers 8 B, activations at most 3,211,264 B (in stem)" in notes


@pytest.mark.parametrize("record", [ESTIMATE, MEASURED], ids=["estimate", "measured"])
@pytest.mark.parametrize("columns", model_views.COLUMNS)
def test_tables_fit_eighty_columns(record: Record, columns: str) -> None:
    table = text_of(model_views.sheet(record, columns=columns)).partition("rows sum")[0]
    assert max(map(len, table.splitlines())) <= WIDTH


def test_no_number_loses_a_digit_however_many_columns_there_are() -> None:
    table = text_of(model_views.full_sheet(MEASURED))
    assert f"{2 * PRODUCTS:,}" in table and "…" not in table


def test_csv_has_every_row_and_column_with_bare_numbers() -> None:
    lines = text_of(model_views.full_sheet(MEASURED), "csv").splitlines()
    assert len(lines) == 1 + len(LAYERS) + 1
    assert lines[0].startswith("layer,kind,params,calls,MAC,estimated [FLOP],add [FLOP]")
    assert f",{PRODUCTS}," in lines[2]


def test_a_record_comes_back_with_its_estimate() -> None:
    back = decode(encode(MEASURED))
    assert back.estimate is not None
    for found, wanted in ((back, MEASURED), (back.estimate, ESTIMATE)):
        assert (found.cells, found.layers, found.calls) == (wanted.cells, wanted.layers, wanted.calls)
        assert (found.memory, found.unknown) == (wanted.memory, wanted.unknown)
    assert stored(back)["estimate"]["coverage"] == ESTIMATE.coverage


def test_another_convention_is_for_both_sides() -> None:
    found = MEASURED.under(convention="arithmetic")
    document = model_views.document(found)
    assert document["total"]["flop"] == TOTAL - PIXELS, "maxima are worth nothing there"
    assert found.estimate is not None and found.estimate.convention == "arithmetic"


def test_sorting() -> None:
    assert [row[0] for row in model_views.sheet(ESTIMATE, sort="params").rows] == ["body.0", "stem", "body.1"]
    assert [row[0] for row in model_views.sheet(ESTIMATE, sort="name").rows] == ["body.0", "body.1", "stem"]
    assert model_views.sheet(MEASURED, sort="measured").rows[0][0] == "stem"
