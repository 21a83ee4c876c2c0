"""The table of processors in docs/counters.md is made from the event tables: `python tests/test_counters_doc.py` writes it again."""

from __future__ import annotations

from pathlib import Path

from flopwatch.flops import pmu
from flopwatch.flops.operations import DType
from flopwatch.flops.pmu import PmuTable

DOCUMENT = Path(__file__).parent.parent / "docs" / "counters.md"
BEGIN = "<!-- made by tests/test_counters_doc.py from flops/tables/pmu -->\n"
END = "<!-- end -->\n"


def told_apart(table: PmuTable) -> str:
    if table.can == "no":
        return "–"
    found = ", ".join(str(dtype) for dtype in table.sets if dtype is not DType.ANY)
    merged = DType.ANY in table.sets and not {DType.FP32, DType.FP64} <= set(table.sets)
    return "; ".join(
        part for part in (found, "the rest as one" if found and merged else "nothing" if merged else "") if part
    )


def rows() -> str:
    lines = [
        "| `--cpu` | cores | FLOP? | told apart | counters | what to know |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in pmu.names():
        table = pmu.load(name)
        counters = str(table.budget.counters) + (f" ({table.budget.alone} alone)" if table.budget.alone else "")
        paired = ", FLOP events take 2" if any(row.counters == 2 for row in table.rows) else ""
        known = table.because or " ".join(table.overcounts)
        cells = (f"`{name}`", table.title, table.can, told_apart(table), counters + paired, known)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def document() -> str:
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{rows()}\n{END}{behind}"


def test_the_table_of_processors_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), f"run `python {Path(__file__).name}` in tests/"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
