from __future__ import annotations

import pytest

from flopwatch import views
from flopwatch.attribution import fold_processes
from flopwatch.flops.convention import CONVENTIONS
from flopwatch.record import Cell, EventCount, Ops, Record, Repeat, Unknown, cells_of
from tests.fakes import MASKED_FMA, block, image

RUNS, ON = 10, 35


def made(*extra: Cell, **more: object) -> Record:
    folded = fold_processes([image(block(runs=RUNS), block(MASKED_FMA, RUNS, thread=2, active=((0, ON),)))], ["1 axpy"])
    values = {"counter": "fake", "command": ("axpy",), "vector_instructions": folded.vector_instructions}
    return Record(**values | more, cells=(*cells_of(folded.cells), *extra))  # type: ignore[arg-type]


def remarks(**more: object) -> str:
    return "\n".join(views.remarks(made(**more)))


def test_totals_have_a_rate_when_timed() -> None:
    flop = 2 * RUNS + 2 * 16 * RUNS
    assert views.totals(made()).rows == (("fp32", flop, 1.0), ("all floating-point", flop, 1.0))
    assert views.totals(made(seconds=2.0)).rows[0][-1] == flop / 2 / 1e9


def test_integer_work_has_a_column_of_its_own() -> None:
    cell = Cell((Ops("int_mad", "int8", 64, False, 3),))
    sheet = views.totals(made(cell))
    assert [column.name for column in sheet.columns][-1] == "integer OP"
    assert sheet.rows[-1] == ("int8", None, None, 2 * 64 * 3)
    assert views.by_axis(made(cell), "layer").rows[0][3] == 2 * 64 * 3


def test_operations_show_instructions_and_worth() -> None:
    assert views.operations(made()).rows[0] == ("fma", "fp32", 16, "masked", RUNS, 2 * 16 * RUNS)


def test_rows_after_the_top_ones_are_summed_in_one() -> None:
    record = made()
    every = views.by_axis(record, "instruction").rows
    assert len(every) == 3
    cut = views.by_axis(record, "instruction", 1).rows
    assert [row[0] for row in cut] == ["vfmadd231ps zmm{k}", "(2 more)"]
    assert sum(int(row[1] or 0) for row in cut) == sum(int(row[1] or 0) for row in every)
    assert views.by_axis(record, "instruction", 2).rows == every  # one row more is not worth a summary


def test_the_remarks() -> None:
    text = remarks()
    assert "convention: pmu (as Intel's FP_ARITH events count" in text
    assert "in fused multiply-adds: 94.1 % of the FLOP" in text
    assert "by vector width: 512 bit 94.1 %, scalar 5.9 %" in text
    assert f"masked-off lanes: {16 * RUNS - ON} of {16 * RUNS} lanes of masked instructions (78.1 %)" in text
    assert "coverage: 100.00 % of the vector instructions classified; unknown: none" in text
    assert "PARTIAL" not in text
    assert "time" not in text


def test_unknown_is_never_a_hundred_percent() -> None:
    text = remarks(vector_instructions=10**9, unknown=(Unknown("vnew", 1), Unknown("vother", 2)))
    assert "coverage: 99.99 %" in text
    assert "unknown: 2 kinds: vnew (1 times), vother (2 times)" in text


def test_what_is_missing_or_hidden_is_said() -> None:
    assert "PARTIAL: a thread was lost" in remarks(complete=False, partial=("a thread was lost",))
    assert "PARTIAL: not everything was counted" in remarks(complete=False)
    assert "hidden from the program: amx-tile, avx512-fp16" in remarks(hidden=("amx-tile", "avx512-fp16"))
    assert "exit code 3" in remarks(exit_code=3)


def test_repeats_and_times() -> None:
    same = remarks(repeats=(Repeat({"fp32": 4}),) * 3)
    assert "3 runs, all with the same count" in same
    spread = remarks(repeats=tuple(Repeat({"fp32": flop}) for flop in (90, 100, 110)))
    assert "3 runs: 100 ± 10 FLOP (10.00%); the table shows the middle one" in spread
    timed = remarks(seconds=2.0, timed_seconds=(1.0, 2.0, 3.0))
    assert "time without instrumentation: 2 s (median of 3, standard deviation 1 s)" in timed


def test_a_program_without_any_floating_point() -> None:
    empty = Record(counter="fake", cells=())
    assert views.totals(empty).rows == (("all floating-point", 0, None),)
    assert "coverage: no vector instruction was executed" in views.remarks(empty)
    assert views.by_axis(empty, "symbol").rows == ()


def test_the_summary_for_programs() -> None:
    rows = {row[0]: row[1] for row in views.summary(made(seconds=2.0)).rows}
    assert rows["flop.fp32"] == rows["flop"] == 2 * RUNS + 2 * 16 * RUNS
    assert rows["instructions.fma.fp32.16.masked"] == RUNS
    assert rows["complete"] == 1
    assert rows["flop_per_second"] == (2 * RUNS + 2 * 16 * RUNS) / 2


def test_names_for_a_table() -> None:
    assert views.shortened(["/usr/lib/libm.so.6"], "library") == ["libm.so.6"]
    assert views.shortened(["/a/libm.so", "/b/libm.so"], "library") == ["/a/libm.so", "/b/libm.so"]
    symbols = {
        "axpy": "axpy",
        "void at::native::(anonymous namespace)::fill<float>(at::Tensor&, int) const": "at::native::{anonymous}::fill",
        "std::function<void (int)>::operator()() const": "std::function::operator{}",
        "void one<int>(int) [clone .constprop.0] [clone ._omp_fn.1]": "one",
        "[no symbol]": "[no symbol]",
        "(2 more)": "(2 more)",
    }
    assert views.shortened(list(symbols), "symbol") == list(symbols.values())
    assert views.shortened(["f(int)", "g", "f(long)"], "symbol") == ["f #1", "g", "f #2"]
    (cut,) = views.shortened(["begin" + "x" * 100 + "end"], "symbol")
    assert len(cut) <= views.LONGEST_NAME
    assert cut.startswith("begin") and cut.endswith("end")


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_is_explained(name: str) -> None:
    assert views.CONVENTIONS[name].startswith(name)


def test_what_hardware_counted() -> None:
    events = (EventCount("SCALAR", "2c7", 10, 1), EventCount("page-faults", "", 3))
    record = Record(counter="hardware", events=events, cells=())
    sheet = views.events(record)
    assert sheet.rows == (("SCALAR", "r2c7", 10, 1), ("page-faults", "", 3, None))
    assert sheet in views.overview(record)
    assert "what no event counts is not seen" in views.coverage(record)
    rows = {row[0]: row[1] for row in views.summary(record).rows}
    assert rows["event.SCALAR"] == 10
    assert rows["coverage"] is None
