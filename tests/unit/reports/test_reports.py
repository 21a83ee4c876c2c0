"""Every format renders every sheet; each one's own text is checked below."""

from __future__ import annotations

import csv as standard_csv
import io
import json
from pathlib import Path

import pytest

from flopwatch import reports
from flopwatch.errors import UsageError
from flopwatch.reports import csv, table
from flopwatch.sheet import Column, Sheet

SHEET = Sheet(
    "a | title",
    (Column("symbol"), Column("FLOP", "count"), Column("share", "share"), Column("rate", "real", "GFLOP/s")),
    (("axpy", 1_234_567, 0.99999, 1.5), ("[no, symbol]", 0, 0.0, None)),
    ("a note",),
)
EMPTY = Sheet("", (), ())


def rendered(name: str, sheet: Sheet) -> str:
    out = io.StringIO()
    reports.find(name).render(sheet, out)
    return out.getvalue()


def test_the_tuple_of_names_is_the_folder() -> None:
    files = {path.stem for path in Path(reports.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(reports.NAMES) == files


def test_an_unknown_format_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="Choose one of: table, csv, json, markdown"):
        reports.find("html")


@pytest.mark.parametrize("name", reports.NAMES)
@pytest.mark.parametrize("sheet", [SHEET, EMPTY, Sheet("only notes", (), (), ("one",))])
def test_every_format_renders_every_sheet(name: str, sheet: Sheet) -> None:
    rendered(name, sheet)


def test_notes_alone_are_a_list_without_a_table() -> None:
    assert rendered("markdown", Sheet("only notes", (), (), ("one", "two"))) == "**only notes**\n\n- one\n- two\n"


def test_table() -> None:
    assert rendered("table", SHEET) == (
        "a | title\n"
        "symbol             FLOP    share  rate [GFLOP/s]\n"
        "axpy          1,234,567  99.99 %             1.5\n"
        "[no, symbol]          0      0 %               -\n"
        "a note\n"
    )


def test_a_table_fits_80_columns_and_keeps_its_numbers_whole() -> None:
    name = "void at::native::(anonymous namespace)::kernel<" + "float, " * 20 + ">"
    wide = Sheet("t", (Column("symbol"), Column("FLOP", "count"), Column("more")), ((name, 10**18, name),))
    text = rendered("table", wide)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "1,000,000,000,000,000,000" in text


def test_only_a_whole_share_is_a_hundred_percent() -> None:
    assert table.percent(1) == "100 %"
    assert table.percent(0.999999) == "99.99 %"
    assert table.percent(0) == "0 %"
    assert table.percent(1e-9) == "< 0.01 %"


def test_csv() -> None:
    lines = list(standard_csv.reader(io.StringIO(rendered("csv", SHEET))))
    assert lines == [
        ["symbol", "FLOP", "share", "rate [GFLOP/s]"],
        ["axpy", "1234567", "0.99999", "1.5"],
        ["[no, symbol]", "0", "0.0", ""],
    ]


def test_csv_with_a_separator_of_several_characters() -> None:
    out = io.StringIO()
    csv.render(SHEET, out, " :: ")
    assert out.getvalue().splitlines()[1] == "axpy :: 1234567 :: 0.99999 :: 1.5"


def test_json() -> None:
    document = json.loads(rendered("json", SHEET))
    assert document["columns"][3] == {"name": "rate", "unit": "GFLOP/s"}
    assert document["rows"][1] == ["[no, symbol]", 0, 0.0, None]
    assert document["notes"] == ["a note"]


def test_markdown() -> None:
    assert rendered("markdown", SHEET) == (
        "**a \\| title**\n\n"
        "| symbol | FLOP | share | rate [GFLOP/s] |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| axpy | 1,234,567 | 99.99 % | 1.5 |\n"
        "| [no, symbol] | 0 | 0 % | - |\n\n"
        "- a note\n"
    )
