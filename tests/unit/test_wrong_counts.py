"""Reports of wrong counts, by their ids in the survey of measurers: each must end right, or in a sentence.

Of M01 to M30, those that concern tables, weights, identification or reading; M09 (counters that wrap) and what happens while
counting are tested beside the hardware counter. M08, M12, M15, M23 and M26 were not given.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flopwatch import processors
from flopwatch.errors import CannotMeasureError, FlopwatchError
from flopwatch.events import Reading
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.readings import ClassifiedReadings, check_kinds, classify_readings
from flopwatch.formats import perf
from flopwatch.imported import record_of
from flopwatch.record import Record
from flopwatch.scope import Scope

N = 1_000_000


def weigh(text: str, cpu: str) -> Record:
    return record_of(perf.parse(text), processors.find(cpu), source="a test")


def lines(counts: dict[str, int], percent: str = "100.00") -> str:
    return "".join(f"{count},,{name},500,{percent},,\n" for name, count in counts.items())


def read(cpu: str, counts: dict[int, int]) -> ClassifiedReadings:
    return classify_readings(
        (Reading(Scope(), f"r{code:x}", count, code) for code, count in counts.items()), pmu.table(cpu)
    )


def x86(vendor: str, family: int, model: int) -> str:
    return f"processor : 0\nvendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nstepping : 1\n"


def test_m01_paired_events_that_share_counters_are_refused() -> None:
    table = pmu.table("zen5")
    paired = [row for row in table.rows if row.counters == 2]
    assert 3 * paired[0].counters == table.budget.counters < 4 * paired[0].counters, (
        "four of them cannot be counted at once"
    )
    assert sum(row.counters for row in table.apart()) > table.budget.counters, "and by datatype there are more"
    with pytest.raises(CannotMeasureError, match="in several runs"):
        weigh(lines({"r6f03": 128_817_446_704}, "50.00"), "zen5")
    assert weigh(lines({"r6f03": 257_698_037_760}), "zen5").flop() == {DType.FP32: 257_698_037_760}


def test_m02_single_precision_has_its_own_weights() -> None:
    assert read("sapphirerapids", {0x80C7: N}).tally.flop() == {DType.FP32: 16 * N}
    assert read("sapphirerapids", {0x40C7: N}).tally.flop() == {DType.FP64: 8 * N}
    sets = pmu.table("sapphirerapids").sets
    assert [row.weight for row in sets[DType.FP32]] == [1, 4, 8, 16]
    assert [row.weight for row in sets[DType.FP64]] == [1, 2, 4, 8]


def test_m03_a_counter_less_than_promised() -> None:
    assert any("takes one counter away" in note for note in pmu.table("skylake-server").notes)
    with pytest.raises(CannotMeasureError, match=r"75\.00%"):
        classify_readings(
            [Reading(Scope(), "r20c7", N, 0x20C7, enabled=4_000, running=3_000)], pmu.table("skylake-server")
        )


def test_m04_counts_not_rates() -> None:
    """Element operations times the length of the vectors; without a wall time there is no rate at all."""
    record = weigh(lines({"r80c6": N}), "a64fx")
    assert record.flop() == {DType.FP64: N * 512 // 128}
    assert record.seconds is None


def test_m05_text_and_weights_come_from_one_table() -> None:
    table = pmu.table("skylake")
    assert any(table.counts in note for note in weigh(lines({"r20c7": 1}), "skylake").notes)
    for row in table.rows:
        if row.lanes and row.dtype in (DType.FP32, DType.FP64):
            bits = row.lanes * row.dtype.bits
            assert row.name.rpartition(".")[2].startswith("SCALAR" if row.lanes == 1 else f"{bits}B_PACKED")


def test_m06_an_unknown_model_ends_in_a_sentence() -> None:
    with pytest.raises(CannotMeasureError, match=r"not known.*family 6 .*model 0xf0.*--counter instrumented"):
        processors.detect(x86("GenuineIntel", 6, 0xF0))


def test_m07_precisions_that_cannot_be_told_apart() -> None:
    table = pmu.table("zen3")
    assert set(table.sets) == {DType.ANY}
    assert any("cannot be told apart" in sentence for sentence in table.cannot_split)
    record = weigh(lines({"fp_ret_sse_avx_ops.all": N}), "zen3")
    assert record.flop() == {DType.ANY: N}
    assert any("Single and double precision cannot be told apart" in note for note in record.notes)


def test_m10_events_of_another_maker_are_not_zero_flop() -> None:
    with pytest.raises(CannotMeasureError, match="None of the events counts FLOP on zen2"):
        weigh(lines({"r02c7": 158_806, "r20c7": 0}), "zen2")
    assert processors.detect(x86("AuthenticAMD", 0x17, 0x31)).name == "zen2"
    with pytest.raises(CannotMeasureError, match="not known"):
        processors.detect(x86("AuthenticAMD", 6, 0x5E))


def test_m11_bf16_has_its_own_umask() -> None:
    table = pmu.table("zen4")
    assert table.by_name["fp_ret_sse_avx_ops.all"].umask == 0x1F
    dots = 64 * N  # 512-bit dot products: 32 products and as many additions each
    assert read("zen4", {0x0F03: 0, 0x1003: dots}).tally.flop() == {DType.BF16: dots}
    assert read("zen4", {0x1F03: dots}).tally.flop() == {DType.ANY: dots}
    assert {row.dtype for row in table.apart()} >= {DType.BF16}


def test_m13_half_precision() -> None:
    assert [row.weight for row in pmu.table("sapphirerapids").sets[DType.FP16]] == [1, 8, 16, 32]
    assert read("sapphirerapids", {0x01CF: N, 0x04CF: N, 0x08CF: N, 0x10CF: N}).tally.flop() == {
        DType.FP16: N * (1 + 8 + 16 + 32)
    }


def test_m14_instructions_are_not_flop() -> None:
    """On cores whose events count instructions no event has a weight, and there is no figure."""
    for name in ("cortex-a72", "cortex-a76", "neoverse-n1", "ampereone", "apple", "cortex-a510"):
        assert all(row.weight is None for row in pmu.load(name).rows)
        with pytest.raises(CannotMeasureError, match="cannot count FLOP"):
            pmu.table(name)


def test_m16_a_known_erratum_is_told() -> None:
    assert any("1291" in note for note in weigh(lines({"r0f03": N}), "zen2").notes)


def test_m17_flop_events_are_not_instructions() -> None:
    row = pmu.table("zen3").by_name["fp_ret_sse_avx_ops.all"]
    assert (row.weight, row.lanes, row.operation) == (1, None, Operation.ANY)
    additions_of_256_bits = N
    assert read("zen3", {0x0F03: 8 * additions_of_256_bits}).tally.flop() == {DType.ANY: 8 * additions_of_256_bits}


def test_m18_raw_codes_work_where_names_do_not() -> None:
    assert weigh(lines({"FP_ARITH": 5, "r20c7": N}), "skylake").unknown[0].name == "FP_ARITH"
    assert (
        weigh(lines({"r20c7": N}), "skylake").flop()
        == weigh(lines({"cpu/event=0xc7,umask=0x20/": N}), "skylake").flop()
    )


def test_m19_wide_work_has_an_event_of_its_own() -> None:
    assert read("sandybridge", {0x2010: 0, 0x4010: 0, 0x0111: N}).tally.flop() == {DType.FP32: 8 * N}
    assert {0x11} <= {row.event for row in pmu.table("sandybridge").sets[DType.FP32]}


def test_m20_too_much_is_said_to_be_too_much() -> None:
    for name in ("sandybridge", "ivybridge"):
        assert pmu.table(name).can == "overcounts"
        assert any("at every new attempt" in note for note in weigh(lines({"r0111": N}), name).notes)


def test_m21_no_event_is_no_guess() -> None:
    for model in (0x3C, 0x3F, 0x45, 0x46):
        found = processors.detect(x86("GenuineIntel", 6, model))
        with pytest.raises(CannotMeasureError, match="It has no event that counts SSE or AVX arithmetic"):
            pmu.table(found.name)


def test_m22_one_event_for_each_kind_of_core(tmp_path: Path) -> None:
    for name in ("cpu_core", "cpu_atom"):
        (tmp_path / "devices" / name).mkdir(parents=True)
        (tmp_path / "devices" / name / "cpus").write_text("0-3\n")
    found = processors.detect(x86("GenuineIntel", 6, 0xAA), sys=tmp_path)
    assert [(kind.pmu, kind.microarchitecture) for kind in found.kinds] == [
        ("cpu_core", "redwoodcove"),
        ("cpu_atom", "crestmont"),
    ]
    both = lines({"cpu_core/r20c7/": N, "cpu_atom/r02c8/": 8 * N})
    assert weigh(both, "meteorlake").flop() == {DType.FP32: 8 * N + 8 * N}
    with pytest.raises(FlopwatchError, match="does not say which kind of core"):
        weigh(lines({"r20c7": N}), "meteorlake")


def test_m24_kinds_of_cores_run_for_a_part_of_the_time() -> None:
    core = [Reading(Scope(), "r20c7", N, 0x20C7, enabled=10_000, running=1_800)]
    atom = [Reading(Scope(), "r02c8", N, 0x02C8, enabled=10_000, running=8_193)]
    check_kinds([core, atom])
    with pytest.raises(CannotMeasureError, match="part of the time only"):
        check_kinds([core, []])


def test_m25_masks_are_not_seen() -> None:
    for name in ("skylake-server", "sapphirerapids", "icelake"):
        assert any("switched off are counted in full" in sentence for sentence in pmu.table(name).overcounts)
    one_lane_on = weigh(lines({"r80c7": N}), "skylake-server")
    assert one_lane_on.flop() == {DType.FP32: 16 * N}
    assert any("switched off are counted in full" in note for note in one_lane_on.notes)
    with pytest.raises(CannotMeasureError, match="all-zero mask"):
        pmu.table("knightslanding")


def test_m27_a_published_umask_that_is_another_events() -> None:
    table = pmu.table("skylake-server")
    assert table.by_name["fp_arith_inst_retired.8_flops"].code == 0x60C7
    assert table.by_name["fp_arith_inst_retired.4_flops"].code == 0x18C7
    assert read("skylake-server", {0x60C7: N}).tally.flop() == {DType.ANY: 8 * N}
    named = weigh(lines({"fp_arith_inst_retired.8_flops": N, "r80c7": 0}), "skylake-server")
    assert [(each.name, each.count) for each in named.unknown] == [("FP_ARITH_INST_RETIRED.8_FLOPS", N)]
    assert "use the raw code r60c7" in named.partial[0]
    assert weigh(lines({"fp_arith_inst_retired.8_flops": N}), "icelake-server").flop() == {DType.ANY: 8 * N}


def test_m28_tile_products_are_not_seen() -> None:
    table = pmu.table("sapphirerapids")
    assert not any("AMX_OPS" in row.name for row in table.rows)
    assert any("Tile products" in sentence for sentence in table.cannot_see)
    model = weigh(lines({"r80c7": 10, "exe.amx_busy": N}), "sapphirerapids")
    assert model.flop() == {DType.FP32: 16 * 10} and not model.complete
    assert "tile products (AMX) ran" in model.partial[0]


def test_m29_events_with_one_umask() -> None:
    """The total is used, what shares an umask is not; types are combined with all operations."""
    assert [row.umask for row in pmu.table("zen6").rows if row.event == 3] == [0x0F]
    assert pmu.table("zen6").can == "unverified"
    types = {row.umask for row in pmu.table("zen5").rows if row.event == 3 and row.umask > 0x0F}
    assert types == {0x2F, 0x4F, 0x6F, 0x8F, 0xAF}
    named = weigh(lines({"fp_ret_sse_avx_ops.packed_single_flops": 0, "r0f03": 0}), "zen5")
    assert "use the raw code r6f03" in named.partial[0]


def test_m30_all_threads_count() -> None:
    product = 2 * 147 * 802_816  # the first convolution of the article, by one thread or by eight
    instructions = product // 8
    one = weigh(f"python-1,{instructions},,r20c7,9,100.00,,\n", "skylake")
    eight = weigh("".join(f"python-{i},{instructions // 8},,r20c7,9,100.00,,\n" for i in range(8)), "skylake")
    assert one.flop() == eight.flop() == {DType.FP32: 236_027_904}
    assert len(eight.rows("thread")) == 8
