"""Loading and resolving event tables."""

from __future__ import annotations

import pytest

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType

HEAD = 'title = "T"\nisa = "x86_64"\ncan = "yes"\nsources = ["s"]\nbudget = { counters = 4 }\n'
ROW = '[[row]]\nname = "{}"\nevent = {}\nsource = "s"\noperation = "any"\ndtype = "fp32"\nweight = {}\n'
FILES = {
    "base": HEAD + ROW.format("A", 1, 1) + ROW.format("B", 2, 1),
    "child": 'extends = "base"\ntitle = "C"\nwithout = ["A"]\n' + ROW.format("B", 2, 4) + ROW.format("D", 3, 1),
    "grandchild": 'extends = "child"\ntitle = "G"\n',
    "loop": 'extends = "knot"\n',
    "knot": 'extends = "loop"\n',
    "without": 'extends = "base"\nwithout = ["Z"]\n',
    "twice": HEAD + ROW.format("A", 1, 1) + ROW.format("A", 2, 1),
    "stray": HEAD + "colour = 1\n",
    "code": HEAD + ROW.format("A", 1, 1) + "code = 7\n",
}


def test_a_table_extends_another() -> None:
    table = pmu.resolve("grandchild", FILES.__getitem__)
    assert (table.name, table.title, table.isa, table.budget.counters) == ("grandchild", "G", "x86_64", 4)
    assert [(row.name, row.weight) for row in table.rows] == [("B", 4), ("D", 1)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("loop", "loop extends itself: loop → knot"),
        ("without", "there is no row Z to leave out"),
        ("twice", "two rows have the same name"),
        ("stray", "colour"),
        ("code", "A: the raw code is made from event and umask"),
    ],
)
def test_what_does_not_fit_is_named(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pmu.resolve(name, FILES.__getitem__)


def test_raw_codes() -> None:
    assert pmu.raw_code("x86_64", 0xC7, 0x02) == 0x02C7
    assert pmu.raw_code("x86_64", 0xCA, 0x1E, 1) == 0x1001ECA
    assert pmu.raw_code("x86_64", 0x1C0, 0x07) == 0x1000007C0, "bits 8 to 11 of an event stand in bits 32 to 35"
    assert pmu.raw_code("aarch64", 0x80C1) == 0x80C1


def test_rows_are_found_by_name_other_name_and_code() -> None:
    table = pmu.table("lioncove")
    row = table.find("FP_ARITH_OPS_RETIRED.SCALAR_SINGLE")
    assert row is not None and row.code == 0x02C7
    assert table.find("fp_arith_inst_retired.scalar_single") is row
    assert table.find(code=0x02C7) is row
    assert table.find("fp_arith_ops_retired.scalar_singel") is None
    assert table.find("whatever", 0x9999) is None, "a raw code counts more than a name"
    zen = pmu.table("zen3")
    assert zen.find(code=0xFF03) is zen.find(code=0x0F03), "two lists have two umasks for one event"


def test_a_table_that_cannot_says_why() -> None:
    for name in ("haswell", "gracemont", "cortex-a53", "cortex-a72", "apple", "knightslanding"):
        table = pmu.load(name)
        with pytest.raises(CannotMeasureError) as error:
            pmu.table(name)
        assert error.value.seen == table.because != ""
        assert str(error.value).startswith(f"Hardware counters cannot count FLOP on {table.title}.")
        assert "--counter instrumented" in error.value.todo


def test_a_name_that_does_not_exist_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no table of events for 'zen7'\. Did you mean zen") as error:
        pmu.load("zen7")
    assert error.value.exit_code == 2
    assert pmu.nearest("q", ("one", "two")) == "Choose one of: one, two."


def test_events_to_count() -> None:
    """Datatypes apart takes more counters than the total; what the total does not include is counted beside it."""

    def short(rows: tuple[pmu.PmuRow, ...]) -> list[str]:
        return [row.name.rpartition(".")[2] for row in rows]

    skylake = pmu.table("skylake")
    assert len(skylake.apart()) == 6 and len(skylake.whole()) == 4 <= skylake.budget.counters
    assert short(skylake.whole()) == ["SCALAR", "128B_PACKED_DOUBLE", "4_FLOPS", "256B_PACKED_SINGLE"]
    server = pmu.table("sapphirerapids")
    assert short(server.whole())[5:] == ["SCALAR_HALF", "128B_PACKED_HALF", "256B_PACKED_HALF", "512B_PACKED_HALF"]
    assert short(pmu.table("zen4").apart()) == ["all_but_bfloat", "bfloat_mac_flops", "all"]
    assert sum(row.counters for row in pmu.table("zen4").apart()) <= pmu.table("zen4").budget.counters
    assert set(pmu.table("zen2").sets) == {DType.ANY}
    assert short(pmu.table("sierraforest").whole()) == ["ALL"]
