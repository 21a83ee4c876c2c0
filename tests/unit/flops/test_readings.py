"""What readings are worth: recorded ones of each family of processors, against FLOP worked out by hand."""

from __future__ import annotations

import pytest

from flopwatch.errors import CannotMeasureError
from flopwatch.events import Reading
from flopwatch.flops import pmu
from flopwatch.flops.convention import PMU
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.readings import ClassifiedReadings, check_kinds, classify_readings
from flopwatch.flops.tally import NOT_SPLIT, Count, Key, Tally
from flopwatch.scope import Scope

# A run of this many iterations; each iteration does what is written beside it.
RUNS = 1_000_003


def read(name: str, counts: dict[str | int, int], *, vector_bits: int | None = None) -> ClassifiedReadings:
    readings = [
        Reading(Scope(), event, count) if isinstance(event, str) else Reading(Scope(), f"r{event:x}", count, event)
        for event, count in counts.items()
    ]
    return classify_readings(readings, pmu.load(name), vector_bits=vector_bits)


FMA = 2
# What the counters of a family show for a known loop, and the FLOP of the loop.
REPLAYS: list[tuple[str, dict[str | int, int], dict[DType, int]]] = [
    # one scalar addition and one 4-lane multiplication, single precision only
    (
        "nehalem",
        {0x4010: 2 * RUNS, 0x8010: 0, 0x1010: RUNS, 0x0110: 0},
        {DType.FP32: RUNS * (1 + 4)},
    ),
    # the same in double precision, beside one x87 addition
    (
        "westmere",
        {0x4010: 0, 0x8010: 2 * RUNS, 0x1010: RUNS, 0x0110: RUNS},
        {DType.FP64: RUNS * (1 + 2), DType.X87: RUNS},
    ),
    # one 256-bit addition of each precision, one scalar double
    ("sandybridge", {0x0111: RUNS, 0x0211: RUNS, 0x8010: RUNS}, {DType.FP32: 8 * RUNS, DType.FP64: (4 + 1) * RUNS}),
    # one scalar double addition, one 256-bit double multiply-add (counts twice)
    ("broadwell", {0x01C7: RUNS, 0x10C7: 2 * RUNS}, {DType.FP64: RUNS * (1 + 4 * FMA)}),
    # the four counts of the 2018 article
    (
        "skylake",
        {0x02C7: 85_770_094, 0x08C7: 47_396_811, 0x20C7: 372_309_776, 0x80C7: 0},
        {DType.FP32: 85_770_094 + 4 * 47_396_811 + 8 * 372_309_776},
    ),
    # one 512-bit multiply-add of each precision, one 128-bit single addition
    (
        "skylake-server",
        {0x80C7: 2 * RUNS, 0x40C7: 2 * RUNS, 0x08C7: RUNS},
        {DType.FP32: RUNS * (16 * FMA + 4), DType.FP64: RUNS * 8 * FMA},
    ),
    # one 512-bit bf16 dot product: 32 products, each with its addition, counted once
    ("cooperlake", {"fp_arith_inst_retired2.512bit_packed_bf16": RUNS}, {DType.BF16: RUNS * 32 * FMA}),
    ("icelake", {"fp_arith_inst_retired.8_flops": RUNS}, {DType.ANY: RUNS * 8}),
    # one half-precision 512-bit multiply-add, one scalar half addition
    ("sapphirerapids", {0x10CF: 2 * RUNS, 0x01CF: RUNS}, {DType.FP16: RUNS * (32 * FMA + 1)}),
    ("goldencove", {0x20C7: 2 * RUNS}, {DType.FP32: RUNS * 8 * FMA}),
    ("lioncove", {"FP_ARITH_OPS_RETIRED.256B_PACKED_DOUBLE": RUNS}, {DType.FP64: RUNS * 4}),
    # FLOP as they are: one 256-bit single addition, one scalar double
    ("crestmont", {0x02C8: 8 * RUNS, 0x01C8: RUNS}, {DType.FP32: 8 * RUNS, DType.FP64: RUNS}),
    ("skymont", {"fp_flops_retired.fp32": 8 * RUNS}, {DType.FP32: 8 * RUNS}),
    ("coyotecove", {0x80C7: RUNS}, {DType.FP32: 16 * RUNS}),
    ("k10", {0x4703: 4 * RUNS, 0x1000007C0: RUNS}, {DType.FP32: 4 * RUNS, DType.X87: RUNS}),
    # one 256-bit double multiply-add
    ("bulldozer", {0xF003: 4 * FMA * RUNS}, {DType.FP64: 4 * FMA * RUNS}),
    ("jaguar", {0x0703: 4 * RUNS, 0x7003: 2 * RUNS}, {DType.FP32: 4 * RUNS, DType.FP64: 2 * RUNS}),
    ("zen1", {0x0F03: 8 * FMA * RUNS, 0xF003: RUNS}, {DType.FP32: 8 * FMA * RUNS, DType.FP64: RUNS}),
    ("zen2", {"fp_ret_sse_avx_ops.all": 8 * FMA * RUNS}, {DType.ANY: 8 * FMA * RUNS}),
    # one 256-bit single multiply-add and one 512-bit bf16 dot product
    (
        "zen4",
        {0x0F03: 8 * FMA * RUNS, 0x1003: 32 * FMA * RUNS},
        {DType.ANY: 8 * FMA * RUNS, DType.BF16: 32 * FMA * RUNS},
    ),
    # one 512-bit double addition, one scalar single multiply-add
    ("zen5", {0xAF03: 8 * RUNS, 0x4F03: FMA * RUNS}, {DType.FP64: 8 * RUNS, DType.FP32: FMA * RUNS}),
    ("zen6", {0x0F03: 16 * RUNS}, {DType.ANY: 16 * RUNS}),
    # 4 lanes of Advanced SIMD, and 8 lanes of a 256-bit SVE vector, which count as 4
    ("neoverse-v1", {0x80C1: 4 * FMA * RUNS, 0x80C0: 4 * FMA * RUNS}, {DType.ANY: RUNS * FMA * (4 + 8)}),
    ("neoverse-n2", {0x80C1: 4 * FMA * RUNS, 0x80C0: 4 * FMA * RUNS}, {DType.ANY: RUNS * FMA * (4 + 4)}),
    ("cortex-x3", {"FP_FIXED_OPS_SPEC": RUNS}, {DType.ANY: RUNS}),
    # 8 double lanes of a 512-bit vector, which count as 2
    ("a64fx", {0x80C6: 2 * FMA * RUNS, 0x80C5: RUNS}, {DType.FP64: 8 * FMA * RUNS, DType.FP32: RUNS}),
]


@pytest.mark.parametrize(("name", "counts", "flop"), REPLAYS, ids=[each[0] for each in REPLAYS])
def test_replay(name: str, counts: dict[str | int, int], flop: dict[DType, int]) -> None:
    classified = read(name, counts)
    assert classified.tally.flop(PMU) == flop
    assert (classified.unknown, classified.partial) == ({}, ())


def test_the_articles_figure() -> None:
    counts: dict[str | int, int] = {0x02C7: 85_770_094, 0x08C7: 47_396_811, 0x20C7: 372_309_776, 0x80C7: 0}
    tally = read("skylake", counts).tally
    assert tally.flop() == {DType.FP32: 3_253_835_546}
    assert tally[Key(Operation.ANY, DType.FP32, 8)] == Count(372_309_776)
    assert tally.fma_share() is None, "the events do not tell multiply-adds apart"
    assert set(tally.flop_by_width()) == {"256", "128", NOT_SPLIT}


def test_an_event_that_includes_others_gives_what_they_leave_over() -> None:
    scalar, single = 0x03C7, 0x02C7
    assert read("skylake", {scalar: 10, single: 4}).tally == Tally(
        {Key(Operation.ANY, DType.ANY, 1): Count(6), Key(Operation.ANY, DType.FP32, 1): Count(4)}
    )
    both = read("skylake", {scalar: 10, single: 4, 0x01C7: 6})
    assert sum(both.tally.flop().values()) == 10
    assert "already" in both.free["FP_ARITH_INST_RETIRED.SCALAR"]
    everything = read("zen5", {0x0F03: 100, 0x6F03: 60, 0xAF03: 30})
    assert everything.tally.flop() == {DType.FP32: 60, DType.FP64: 30, DType.ANY: 10}


def test_counters_that_contradict_each_other_are_named() -> None:
    classified = read("skylake", {0x03C7: 3, 0x02C7: 4})
    assert classified.tally.flop() == {DType.FP32: 4}
    assert classified.partial == (
        "FP_ARITH_INST_RETIRED.SCALAR counted less (3 FLOP) than the events it includes (4 FLOP)",
    )


def test_unknown_is_never_zero() -> None:
    classified = read("sapphirerapids", {"some_event.of_yours": 5, 0x02CF: 7, 0x08C7: 1})
    assert classified.unknown == {"some_event.of_yours": 5, "FP_ARITH_INST_RETIRED2.COMPLEX_SCALAR_HALF": 7}
    assert classified.counted == ("FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE",)


def test_packed_work_of_both_precisions_cannot_be_weighed() -> None:
    classified = read("nehalem", {0x4010: 10, 0x8010: 10, 0x1010: 5})
    assert classified.unknown == {"FP_COMP_OPS_EXE.SSE_FP_PACKED": 5}
    assert read("nehalem", {0x4010: 10, 0x1010: 5}).unknown == {"FP_COMP_OPS_EXE.SSE_FP_PACKED": 5}, "not known to be 0"


def test_scopes_stay_apart() -> None:
    one, other = Scope(thread="1"), Scope(thread="2")
    readings = [Reading(one, "r8c7", 3, 0x08C7), Reading(other, "r8c7", 5, 0x08C7), Reading(one, "r8c7", 1, 0x08C7)]
    classified = classify_readings(readings, pmu.table("skylake"))
    assert {scope: tally.flop() for scope, tally in classified.by_scope.items()} == {
        one: {DType.FP32: 4 * (3 + 1)},
        other: {DType.FP32: 4 * 5},
    }
    assert classified.tally.flop() == {DType.FP32: 4 * 9}


def test_the_length_of_vectors_can_be_given() -> None:
    assert read("neoverse-v1", {0x80C0: 10}, vector_bits=128).tally.flop() == {DType.ANY: 10}


def test_a_shared_counter_is_refused() -> None:
    shared = Reading(Scope(), "r02c7", 7, 0x02C7, enabled=1_000, running=500)
    with pytest.raises(CannotMeasureError, match=r"part of the time only.*50\.00%.*fewer events"):
        classify_readings([shared], pmu.table("skylake"))
    assert classify_readings([shared], pmu.table("skylake"), hybrid=True).tally.flop() == {DType.FP32: 7}


def test_kinds_of_cores_share_the_time() -> None:
    def on(running: int, event: str = "r02c7") -> Reading:
        return Reading(Scope(), event, 1, 0x02C7, enabled=1_000, running=running)

    check_kinds([[on(700), on(700, "r08c7")], [on(299)]])
    with pytest.raises(CannotMeasureError, match="r08c7"):
        check_kinds([[on(700), on(350, "r08c7")], [on(300)]])
    with pytest.raises(CannotMeasureError, match=r"90\.00%"):
        check_kinds([[on(700)], [on(200)]])
    check_kinds([[], []])
