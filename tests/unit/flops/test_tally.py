"""Laws that tallies obey, whatever is in them."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.flops import ARITHMETIC, CONVENTIONS, PMU, Count, DType, Key, Operation, Tally

# Dot products within 128 bits fill at least 128 bits.
LANES = {Operation.DPP: st.sampled_from([16, 32])}


@st.composite
def entries(draw: st.DrawFn) -> tuple[Key, Count]:
    operation = draw(st.sampled_from(Operation))
    lanes = draw(LANES.get(operation, st.sampled_from([1, 2, 4, 8, 16, 32])))
    masked = draw(st.booleans()) and operation is not Operation.DPP
    instructions = draw(st.integers(0, 10**12))
    active = draw(st.none() | st.integers(0, lanes * instructions)) if masked else None
    dtype = draw(st.sampled_from([each for each in DType if each is not DType.ANY or operation is Operation.ANY]))
    return Key(operation, dtype, lanes, masked), Count(instructions, active)


tallies = st.lists(entries(), max_size=6).map(lambda pairs: Tally(dict(pairs)))
runs = st.integers(0, 10**6)
conventions = st.sampled_from(list(CONVENTIONS.values()))


@given(tallies, tallies, tallies)
def test_addition_has_no_order_and_no_brackets(a: Tally, b: Tally, c: Tally) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == Tally.total([c, b, a]) == sum([a, b, c], Tally())
    assert hash(a + b) == hash(b + a)


@given(tallies)
def test_nothing_adds_nothing(a: Tally) -> None:
    assert a + Tally() == a == 1 * a == sum([a])
    assert a * 0 == Tally()
    assert not Tally()


@given(tallies, tallies, runs, runs)
def test_scaling_spreads_over_sums(a: Tally, b: Tally, m: int, n: int) -> None:
    assert (a + b) * n == a * n + b * n
    assert a * m * n == a * (m * n)
    assert a * m + a * n == a * (m + n)


@given(tallies, tallies, runs, conventions, st.sampled_from(["full", None]))
def test_flop_is_linear(a: Tally, b: Tally, n: int, convention: object, lanes: object) -> None:
    for measure in (Tally.flop, Tally.op):
        one, other = measure(a, convention, "full"), measure(b, convention, "full")  # type: ignore[arg-type]
        both = {dtype: n * (one.get(dtype, 0) + other.get(dtype, 0)) for dtype in DType}
        assert measure((a + b) * n, convention, "full") == {d: v for d, v in both.items() if v}  # type: ignore[arg-type]


@given(tallies)
def test_pmu_is_never_below_arithmetic(a: Tally) -> None:
    for measure in (Tally.flop, Tally.op):
        pmu, arithmetic = measure(a, PMU), measure(a, ARITHMETIC)
        assert all(pmu[dtype] >= flop >= 0 for dtype, flop in arithmetic.items())


@given(tallies, conventions)
def test_every_cut_has_the_same_sum(a: Tally, convention: object) -> None:
    total = sum(a.flop(convention).values())  # type: ignore[arg-type]
    assert sum(a.flop_by_operation(convention).values()) == total  # type: ignore[arg-type]
    assert sum(a.flop_by_width(convention).values()) == total  # type: ignore[arg-type]
    assert all(dtype.floating for dtype in a.flop()) and not any(dtype.floating for dtype in a.op())


@given(tallies)
def test_no_zero_rows_and_a_fixed_order(a: Tally) -> None:
    assert all(count.instructions for count in a.values())
    assert Tally(dict(reversed(list(a.items())))).rows() == a.rows()
    assert pickle.loads(pickle.dumps(a)) == a


def test_active_lanes_need_every_mask() -> None:
    key = Key(Operation.ADD, DType.FP32, lanes=16, masked=True)
    known, lost = Tally({key: Count(2, 5)}), Tally({key: Count(1, None)})
    assert (known.flop(ARITHMETIC), known.flop(), known.wasted_lanes()) == ({DType.FP32: 5}, {DType.FP32: 32}, 27)
    assert known.wasted_flop() == 32 - 5
    both = known + lost
    assert not both.masks_recorded
    assert both.flop(ARITHMETIC) == {DType.FP32: 3 * 16}


def test_shares() -> None:
    tally = (
        Tally.of(Operation.FMA, DType.FP32, lanes=16, instructions=3)
        + Tally.of(Operation.ADD, DType.FP64, lanes=4, instructions=5)
        + Tally.of(Operation.MUL, DType.FP32, instructions=12)
        + Tally.of(Operation.DOT, DType.INT8, lanes=64, instructions=7)
    )
    fma, add, mul = 3 * 16 * 2, 5 * 4, 12
    assert tally.fma_share() == fma / (fma + add + mul)
    assert tally.flop_by_width() == {"512": fma, "256": add, "scalar": mul}
    assert tally.width_shares() == {width: flop / (fma + add + mul) for width, flop in tally.flop_by_width().items()}
    assert Tally().fma_share() is None and Tally().width_shares() == {}


@pytest.mark.parametrize(
    ("key", "count"),
    [
        (Key(Operation.ADD, DType.FP32, 0), Count(1)),
        (Key(Operation.ADD, DType.FP32, 4), Count(-1)),
        (Key(Operation.ADD, DType.FP32, 4), Count(1, 4)),
        (Key(Operation.ADD, DType.FP32, 4, True), Count(1, 5)),
    ],
    ids=["no lanes", "negative", "active without mask", "more active than lanes"],
)
def test_what_is_no_count_is_refused(key: Key, count: Count) -> None:
    with pytest.raises(ValueError):
        Tally({key: count})


def test_a_tally_cannot_be_undone() -> None:
    with pytest.raises(ValueError):
        Tally.of(Operation.ADD, DType.FP32) * -1


def test_every_operation_has_a_weight_in_every_convention() -> None:
    for convention in CONVENTIONS.values():
        assert set(convention.weights) == set(Operation)


def test_a_datatype_is_unknown_only_where_hardware_did_not_tell() -> None:
    tally = Tally.of(Operation.ANY, DType.ANY, lanes=4, instructions=5)
    assert tally.flop(PMU) == tally.flop(ARITHMETIC) == {DType.ANY: 4 * 5}
    assert list(tally.flop_by_width()) == ["scalar or not told apart"]
    with pytest.raises(ValueError, match="datatype is not known"):
        Tally.of(Operation.ADD, DType.ANY)
    with pytest.raises(ValueError, match="bits"):
        _ = DType.ANY.bits
