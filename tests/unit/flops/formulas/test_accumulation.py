"""Scans, scatters, groups and histograms: loops over numbers that count, and the calls of PyTorch's own functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import accumulation, estimate
from tests.unit.flops.formulas.counting import Counting, added, exp, larger, log, operations
from tests.unit.flops.formulas.numerics import SINGLE, flop, worth

ROWS, COLUMNS, PICKED = 4, 6, 3
TABLE = Array((ROWS, COLUMNS))
INDEX = Array((ROWS, PICKED), "int64")
PLACES = Array((PICKED,), "int64")


@given(st.integers(0, 5), st.sampled_from(["sum", "prod", "max", "logsumexp"]))
def test_scans(length: int, how: str) -> None:
    seen = Counting()
    for line in seen.numbers(2, length):
        for i in range(1, length):
            one, other = line[i - 1], line[i]
            if how == "sum":
                line[i] = one + other
            elif how == "prod":
                line[i] = one * other
            elif how == "max":
                line[i] = larger(one, other)
            else:
                line[i] = larger(one, other) + log(exp(-abs(one - other)))  # log1p is one function value
    assert operations(accumulation.scan(SINGLE, 2, length, how)) == +seen.operations


def test_scans_go_along_their_dimension() -> None:
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        found = worth(f"aten::{name}", TABLE, self=TABLE, dim=-1)
        assert flop(found) == ROWS * (COLUMNS - 1)
        assert flop(worth(f"aten::{name}", TABLE, self=TABLE, dim=0)) == (ROWS - 1) * COLUMNS
    assert flop(worth("aten::cumsum", Array((), "float32"), self=Array(()), dim=0)) == 0
    assert worth("aten::cumsum", Array((ROWS,), "int64"), self=Array((ROWS,), "int64"), dim=0).tally == {}
    # Truth values are summed as integers, and integers as floating-point numbers where that is asked for.
    asked = worth("aten::cumsum", TABLE, self=Array((ROWS, COLUMNS), "int64"), dim=1, dtype="float32")
    assert flop(asked) == ROWS * (COLUMNS - 1)


@pytest.mark.parametrize("how", ["sum", "mean", "prod", "max"])
def test_what_is_scattered_is_joined_one_by_one(how: str) -> None:
    seen = Counting()
    target, source = seen.numbers(ROWS), seen.numbers(PICKED)
    for place, value in zip((0, 2, 2), source, strict=True):
        if how == "prod":
            target[place] = target[place] * value
        elif how == "max":
            target[place] = larger(target[place], value)
        else:
            target[place] = target[place] + value
    if how == "mean":
        target = [value / 2 for value in target]
    assert operations(accumulation.scattered(SINGLE, PICKED, how, ROWS)) == +seen.operations


def test_only_what_accumulates_adds() -> None:
    picked = ROWS * PICKED
    assert flop(worth("aten::scatter_add_", TABLE, self=TABLE, dim=1, index=INDEX, src=TABLE)) == picked
    many: dict[str, Any] = {"self": TABLE, "dim": 1, "index": INDEX, "src": TABLE, "include_self": True}
    assert flop(worth("aten::scatter_reduce", TABLE, **many, reduce="amax")) == picked
    assert flop(worth("aten::scatter_reduce", TABLE, **many, reduce="mean")) == picked + ROWS * COLUMNS
    assert flop(worth("aten::scatter_", TABLE, self=TABLE, dim=1, index=INDEX, src=TABLE, reduce="add")) == picked
    rows: dict[str, Any] = {"self": TABLE, "dim": 0, "index": PLACES, "source": Array((PICKED, COLUMNS))}
    assert flop(worth("aten::index_add_", TABLE, **rows, alpha=1)) == PICKED * COLUMNS
    assert flop(worth("aten::index_add_", TABLE, **rows, alpha=2)) == 2 * PICKED * COLUMNS
    assert flop(worth("aten::index_reduce", TABLE, **rows, reduce="prod")) == PICKED * COLUMNS
    put: dict[str, Any] = {"self": TABLE, "indices": [PLACES], "values": Array((PICKED, COLUMNS))}
    assert flop(worth("aten::index_put_", TABLE, **put, accumulate=True)) == PICKED * COLUMNS
    both = [Array((ROWS, 1), "int64"), PLACES]
    assert flop(worth("aten::index_put", TABLE, self=TABLE, indices=both, values=Array(()), accumulate=True)) == picked
    last = [None, PLACES]
    assert flop(worth("aten::index_put", TABLE, self=TABLE, indices=last, values=Array(()), accumulate=True)) == picked
    assert isinstance(estimate(Op("aten::index_put_", {**put, "accumulate": False}, (TABLE,))), Free)
    assert isinstance(estimate(Op("aten::scatter_", {"self": TABLE, "index": INDEX, "value": 0}, (TABLE,))), Free)
    assert flop(worth("aten::put", TABLE, self=TABLE, index=INDEX, source=INDEX, accumulate=True)) == picked


def test_gradients_of_lookups_add_a_row_for_each_index() -> None:
    tokens, width = 7, 16
    gradient = Array((tokens, width))
    arguments: dict[str, Any] = {"indices": Array((tokens,), "int64"), "num_weights": 100, "padding_idx": -1}
    made = Array((100, width))
    plain = worth("aten::embedding_dense_backward", made, grad_output=gradient, scale_grad_by_freq=False, **arguments)
    scaled = worth("aten::embedding_dense_backward", made, grad_output=gradient, scale_grad_by_freq=True, **arguments)
    assert (flop(plain), flop(scaled)) == (tokens * width, 2 * tokens * width)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_bags(how: str, weighted: bool) -> None:
    bags, inner = ((0, 1, 2), (3, 4)), 2
    seen = Counting()
    table = seen.numbers(5, inner)
    for bag in bags:
        rows = [[value * 0.5 if weighted else value for value in table[i]] for i in bag]
        for column in zip(*rows, strict=True):
            first, *rest = column
            for value in rest:
                first = larger(first, value) if how == "max" else first + value
            if how == "mean":
                first / len(bag)
    found = worth(
        "aten::_embedding_bag",
        Array((2, inner)),
        weight=Array((5, inner)),
        indices=Array((5,), "int64"),
        offsets=Array((2,), "int64"),
        mode=("sum", "mean", "max").index(how),
        per_sample_weights=Array((5,)) if weighted else None,
    )
    assert operations(found) == +seen.operations


@pytest.mark.torch
def test_gradients_of_bags() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    tokens, width, bags = 6, 4, 2
    for mode, known in (("sum", tokens * width), ("mean", tokens * width + bags * width), ("max", bags * width)):
        weight = torch.ones(9, width, requires_grad=True)
        made = torch.nn.functional.embedding_bag(torch.arange(tokens), weight, torch.tensor([0, 3]), mode=mode)
        (op,) = (each for each in calls(made.backward, torch.ones(bags, width)) if "embedding_bag" in each.name)
        assert flop(worth(op.name, *op.outputs, **op.arguments)) == known


def test_segments() -> None:
    data, made = Array((10, 3)), Array((4, 3))
    assert flop(worth("aten::segment_reduce", made, data=data, reduce="sum")) == (10 - 4) * 3
    assert flop(worth("aten::segment_reduce", made, data=data, reduce="mean", initial=0.0)) == (10 + 4) * 3
    back: dict[str, Any] = {"grad": made, "output": made, "data": data}
    assert flop(worth("aten::_segment_reduce_backward", data, **back, reduce="mean")) == 4 * 3
    assert flop(worth("aten::_segment_reduce_backward", data, **back, reduce="prod")) == 2 * 10 * 3
    assert isinstance(estimate(Op("aten::_segment_reduce_backward", {**back, "reduce": "sum"}, (data,))), Free)


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("ranged", [False, True])
def test_histograms(even: bool, ranged: bool) -> None:
    seen = Counting()
    x, bins = seen.numbers(6), seen.numbers(3)
    if not ranged:
        for extreme in (x, [-each for each in x]):
            top = extreme[0]
            for value in extreme[1:]:
                top = larger(top, value)
    if even:
        seen.number(3.0) / 1.0
    for value in x:
        if even:
            (value - 0.5) * 3.0
        bins[0] = bins[0] + 1.0
    assert operations(accumulation.histogram(SINGLE, 6, 3, even=even, ranged=ranged)) == +seen.operations


def test_densities_are_shares_of_the_sum_by_the_width() -> None:
    seen = Counting()
    bins, borders = seen.numbers(3), seen.numbers(4)
    whole = added(bins)
    for i, each in enumerate(bins):
        each / ((borders[i + 1] - borders[i]) * whole)
    plain = accumulation.histogram(SINGLE, 6, 3, even=False, ranged=True)
    dense = accumulation.histogram(SINGLE, 6, 3, even=False, ranged=True, density=True)
    assert operations(dense) - operations(plain) == +seen.operations


def test_counting_integers_is_free_and_weights_are_added() -> None:
    integers = Array((PICKED,), "int64")
    assert isinstance(estimate(Op("aten::bincount", {"self": integers, "weights": None}, (integers,))), Free)
    assert flop(worth("aten::bincount", Array((9,)), self=integers, weights=Array((PICKED,)))) == PICKED


def test_sorting_and_searching_compare() -> None:
    for name in ("sort", "topk", "kthvalue", "median", "unique_dim", "searchsorted", "mode", "bucketize"):
        assert isinstance(estimate(Op(f"aten::{name}", {"self": TABLE}, (TABLE,))), Free)


def test_values_at_the_same_place_are_added_up_if_somebody_knows_how_many() -> None:
    before, after = Array((9, 9), stored=20), Array((9, 9), stored=12)
    assert flop(worth("aten::_coalesce", after, self=before)) == 20 - 12
    assert isinstance(estimate(Op("aten::_coalesce", {"self": Array((9, 9))}, (Array((9, 9)),))), Unknown)


def test_rows_of_sparse_tensors_are_joined_if_somebody_knows_how_many_values_they_have() -> None:
    given, made = Array((5, 9), stored=20), Array((5, 1), stored=5)
    assert flop(worth("aten::_sparse_csr_sum", made, self=given, dim=[1])) == 20 - 5
    assert flop(worth("aten::_sparse_csr_prod", made, self=given, dim=[1])) == 20 - 5
    assert isinstance(estimate(Op("aten::_sparse_csr_sum", {"self": Array((5, 9))}, (made,))), Unknown)
