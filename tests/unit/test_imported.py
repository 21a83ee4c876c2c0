"""Records made from what perf counted elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flopwatch import record
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops.operations import DType
from flopwatch.imported import read_counts
from flopwatch.record import Record

Weigh = Callable[[str, str], Record]

# The counts that the article of 2018 printed, with its raw codes, and what they are worth.
ARTICLE = (
    "85770094,,r02C7,1601234567,100.00,,\n47396811,,r08C7,1601234567,100.00,,\n"
    "372309776,,r20C7,1601234567,100.00,,\n0,,r80C7,1601234567,100.00,,\n"
)
ARTICLE_FLOP = 85_770_094 * 1 + 47_396_811 * 4 + 372_309_776 * 8 + 0 * 16


@pytest.fixture
def weigh(tmp_path: Path) -> Weigh:
    def weigh(text: str, cpu: str) -> Record:
        path = tmp_path / "counts"
        path.write_text(text)
        return read_counts(path, format="perf", cpu=cpu)

    return weigh


def test_the_article(weigh: Weigh) -> None:
    found = weigh(ARTICLE, "skylake")
    assert ARTICLE_FLOP == 3_253_835_546
    assert found.flop() == {DType.FP32: ARTICLE_FLOP}
    assert (found.counter, found.convention, found.complete, found.machine) == (
        "hardware",
        "pmu",
        True,
        {"processor": "skylake"},
    )
    assert [(each.name, each.code, each.count) for each in found.events][:1] == [
        ("FP_ARITH_INST_RETIRED.SCALAR_SINGLE", "2c7", 85_770_094)
    ]
    assert found.notes[0] == "not in it: fp64, whose events were not counted"
    assert any("fused multiply-add" in note and "twice" in note for note in found.notes)


def test_the_article_by_names_and_as_json(weigh: Weigh) -> None:
    names = ("scalar_single", "128b_packed_single", "256b_packed_single")
    counts = (85_770_094, 47_396_811, 372_309_776)
    text = "".join(
        f"{count},,fp_arith_inst_retired.{name}:u,9,100.00,,\n" for name, count in zip(names, counts, strict=True)
    )
    assert weigh(text, "Coffee Lake").flop() == {DType.FP32: ARTICLE_FLOP}
    text = "".join(
        f'{{"counter-value" : "{count}.000000", "unit" : "", "event" : "cpu/event=0xc7,umask={umask}/", "event-runtime" : 9, '
        f'"pcnt-running" : 100.00}}\n'
        for umask, count in zip(("0x2", "0x8", "0x20"), counts, strict=True)
    )
    assert weigh(text, "skylake").flop() == {DType.FP32: ARTICLE_FLOP}


def test_a_record_like_any_other(weigh: Weigh, tmp_path: Path) -> None:
    found = weigh(ARTICLE, "skylake")
    record.save(found, tmp_path / "r.json")
    loaded = record.load(tmp_path / "r.json")
    assert (loaded.tally, loaded.events, loaded.notes, loaded.flop()) == (
        found.tally,
        found.events,
        found.notes,
        found.flop(),
    )
    assert found.under(convention="pmu") is not None
    for wish in ({"convention": "arithmetic"}, {"lanes": "active"}):
        with pytest.raises(UsageError, match="cannot be weighed by another rule"):
            found.under(**wish)


def test_what_else_perf_counted(weigh: Weigh) -> None:
    text = "7,,r02c7,9,100.00,,\n0.8,msec,task-clock,9,100.00,,\n99,,instructions:u,9,60.00,,\n1600000000,ns,duration_time,9,100.00,,\n"
    found = weigh(text, "skylake")
    assert found.seconds == pytest.approx(1.6)
    assert [each.name for each in found.events] == ["FP_ARITH_INST_RETIRED.SCALAR_SINGLE"]
    assert found.complete and not found.unknown


def test_multiplexed_counts_are_refused(weigh: Weigh) -> None:
    for text in ("7,,r02c7,800,80.00,,\n", "7,,r02c7,0,80.00,,\n"):
        with pytest.raises(CannotMeasureError, match=r"80\.00%.*in several runs") as error:
            weigh(text, "skylake")
        assert error.value.exit_code == 4


def test_events_without_a_count(weigh: Weigh) -> None:
    found = weigh("7,,r02c7,9,100.00,,\n<not counted>,,r08c7,0,0.00,,\n<not supported>,,r80c7,0,100.00,,\n", "skylake")
    assert not found.complete
    assert found.partial == ("r08c7: not counted on that machine", "r80c7: not supported on that machine")
    with pytest.raises(
        CannotMeasureError, match=r"None of the events counts FLOP on skylake\. There are r02c7 <not supported>"
    ):
        weigh("<not supported>,,r02c7,0,100.00,,\n", "skylake")


def test_no_event_of_that_processor(weigh: Weigh) -> None:
    with pytest.raises(CannotMeasureError, match=r"perf stat -x, -e r03c7,r04c7,r18c7,r20c7"):
        weigh("99,,instructions,9,100.00,,\n", "skylake")


def test_unknown_events_are_kept(weigh: Weigh) -> None:
    found = weigh("7,,r02c7,9,100.00,,\n5,,rffff,9,100.00,,\n", "skylake")
    assert [(each.name, each.count) for each in found.unknown] == [("rffff", 5)]


def test_threads_are_rows(weigh: Weigh) -> None:
    found = weigh("blas-1,7,,r20c7,9,100.00,,\nblas-2,5,,r20c7,9,100.00,,\n", "skylake")
    assert [(each.code, each.count) for each in found.events] == [("20c7", 7 + 5)]
    assert {row.name: row.tally.flop() for row in found.rows("thread")} == {
        "blas-1": {DType.FP32: 8 * 7},
        "blas-2": {DType.FP32: 8 * 5},
    }


def test_hybrid(weigh: Weigh) -> None:
    text = "7,,cpu_core/r20c7/,9,100.00,,\n6,,cpu_atom/fp_flops_retired.fp32/u,9,100.00,,\n"
    assert weigh(text, "meteorlake").flop() == {DType.FP32: 8 * 7 + 6}
    found = weigh("7,,cpu_core/r20c7/,9,100.00,,\n6,,cpu_atom/r20c7/,9,100.00,,\n", "alderlake")
    assert found.flop() == {DType.FP32: 8 * 7} and not found.complete
    assert "everything is invisible" in found.partial[0]
    with pytest.raises(UsageError, match="Name one kind with --cpu: goldencove, gracemont"):
        weigh("7,,r20c7,9,100.00,,\n", "alderlake")
    assert weigh("7,,r20c7,9,100.00,,\n", "goldencove").flop() == {DType.FP32: 8 * 7}


def test_counters_that_do_not_count(weigh: Weigh) -> None:
    found = weigh("0,,r02c7,9,100.00,,\n0,,r20c7,9,100.00,,\n", "skylake")
    assert found.flop() == {} and not found.complete
    assert found.partial[0].startswith("every FLOP event counted 0")


def test_shared_counters_of_other_events_do_not_matter(weigh: Weigh) -> None:
    text = "7,,r02c7,9,100.00,,\n5,,fp_arith_inst_retired.vector,4,50.00,,\n"
    with pytest.raises(CannotMeasureError, match="vector"):
        weigh(text, "skylake")
    assert weigh("7,,rcf03,9,100.00,,\n7,,r0f03,9,100.00,,\n6,,r0408,4,50.00,,\n", "zen4").flop() == {DType.ANY: 7}


def test_an_event_that_cannot_be_trusted_by_its_name(weigh: Weigh) -> None:
    with pytest.raises(CannotMeasureError, match="use the raw code r60c7"):
        weigh("7,,fp_arith_inst_retired.8_flops,9,100.00,,\n", "cascadelake")


def test_means_of_several_runs(weigh: Weigh) -> None:
    assert weigh("7,,r02c7,0.50%,9,100.00,,\n", "skylake").notes[-1].startswith("the counts are means of several runs")


def test_wrong_names(weigh: Weigh, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no processor named 'skylle'\. Did you mean skylake"):
        weigh(ARTICLE, "skylle")
    with pytest.raises(UsageError, match="no format named 'pref'"):
        read_counts(tmp_path / "x", format="pref", cpu="skylake")
