"""Losses, against loops over samples, and a table of hand-worked ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.flops.formulas import losses, work
from flopwatch.flops.formulas.losses import Reduction
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, Number, added, exp, larger, largest, log, operations

FP32 = Numbers(DType.FP32)
ROWS = st.integers(1, 5)
REDUCTION = st.sampled_from(Reduction)
YES = st.booleans()


def reduce(values: list[Any], reduction: Reduction) -> None:
    if reduction is not Reduction.NONE:
        total = added(values)
        if reduction is Reduction.MEAN:
            _ = total / len(values)


@given(ROWS, REDUCTION)
def test_squared_error(rows: int, reduction: Reduction) -> None:
    seen = Counting()
    differences = [x - y for x, y in zip(seen.numbers(rows), seen.numbers(rows), strict=True)]
    reduce([d * d for d in differences], reduction)
    assert operations(losses.pointwise("mse", FP32, rows, reduction)) == +seen.operations


@given(ROWS, REDUCTION, YES)
def test_binary_cross_entropy(rows: int, reduction: Reduction, weight: bool) -> None:
    seen = Counting()
    values = []
    for x, y, w in seen.numbers(rows, 3):
        value = (y - 1) * larger(log(-x), -100) - y * larger(log(x), -100)
        values.append(value * w if weight else value)
    reduce(values, reduction)
    assert operations(losses.binary_cross_entropy(FP32, rows, reduction, weight=weight)) == +seen.operations


@given(ROWS, REDUCTION, YES, YES)
def test_binary_cross_entropy_with_logits(rows: int, reduction: Reduction, weight: bool, positive: bool) -> None:
    seen = Counting()
    values = []
    for x, y, w, p in seen.numbers(rows, 4):
        bent = larger(x, 0) - log(exp(-abs(x)))  # log1p is one function
        if positive:
            bent = ((p - 1) * y + 1) * bent
        value = (1 - y) * x - bent
        values.append(value * w if weight else value)
    reduce(values, reduction)
    made = losses.binary_cross_entropy_with_logits(FP32, rows, reduction, weight=weight, positive_weight=positive)
    assert operations(made) == +seen.operations


@given(ROWS, REDUCTION, YES)
def test_negative_log_likelihood(rows: int, reduction: Reduction, weight: bool) -> None:
    seen = Counting()
    chosen, weights = seen.numbers(rows), list(seen.numbers(rows))
    values = [-x * w if weight else -x for x, w in zip(chosen, weights, strict=True)]
    if reduction is not Reduction.NONE:
        total = added(values)
        if reduction is Reduction.MEAN:
            _ = total / (added(weights) if weight else rows)
    assert operations(losses.negative_log_likelihood(FP32, rows, reduction, weight=weight)) == +seen.operations


@given(ROWS, st.integers(2, 5), REDUCTION, st.sampled_from([1, 2]), YES)
def test_multi_margin(rows: int, classes: int, reduction: Reduction, p: int, weight: bool) -> None:
    seen = Counting()
    values = []
    for row in seen.numbers(rows, classes):
        base = 1.0 - row[0]
        terms = [larger(base + x, 0) for x in row[1:]]
        total: Any = added(term * term if p == 2 else term for term in terms)
        total = total * row[0] if weight else total
        values.append(total / classes)
    reduce(values, reduction)
    made = losses.multi_margin(FP32, rows, classes, reduction, p=p, weight=weight)
    assert operations(made) == +seen.operations


@given(ROWS, st.integers(2, 5), st.sampled_from([1, 2]), YES)
def test_multi_margin_backward(rows: int, classes: int, p: int, weight: bool) -> None:
    seen = Counting()
    for row in seen.numbers(rows, classes):
        g: Number = seen.number()
        slope = g * 0.2  # one over the classes
        slope = slope * row[0] if weight else slope
        base = 1.0 - row[0]
        margins = [base + x for x in row[1:]]
        added(margin * 2.0 * slope if p == 2 else slope for margin in margins)
    assert operations(losses.multi_margin_backward(FP32, rows, classes, p=p, weight=weight)) == +seen.operations


def likeliest(terms: list[Number]) -> Any:
    top = largest(terms)
    return top + log(added(exp(term - top) for term in terms))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3))
def test_connectionist_temporal(samples: list[tuple[int, int]]) -> None:
    seen = Counting()
    for steps, labels in samples:
        states = [seen.number() for _ in range(2 * labels + 1)]
        for _ in range(steps - 1):
            states = [likeliest([state, states[0], states[1]]) + seen.number(0.2) for state in states]
        likeliest(states[-2:])
    lengths, labels_of = zip(*samples, strict=True)
    assert operations(losses.connectionist_temporal(FP32, lengths, labels_of)) == +seen.operations


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3), st.integers(1, 4))
def test_connectionist_temporal_backward(samples: list[tuple[int, int]], classes: int) -> None:
    seen = Counting()
    for steps, labels in samples:
        alphas = [[seen.number() for _ in range(2 * labels + 1)] for _ in range(steps)]
        states = [seen.number() for _ in range(2 * labels + 1)]
        for alpha in alphas[-1][-2:]:
            _ = alpha + states[0]
        for step in reversed(range(steps - 1)):
            states = [likeliest([state, states[0], states[-1]]) + seen.number(0.2) for state in states]
            place = seen.number()
            for alpha, beta in zip(alphas[step], states, strict=True):
                place = likeliest([place, alpha + beta])
        for _ in range(steps * classes):
            place, loss, probability, g = seen.numbers(4)
            _ = (exp(probability) - exp(place + loss - probability)) * g
    lengths, labels_of = zip(*samples, strict=True)
    made = losses.connectionist_temporal_backward(FP32, lengths, labels_of, classes=classes)
    assert operations(made) == +seen.operations


@pytest.mark.parametrize(
    ("reduction", "operations_of"),
    [
        (Reduction.NONE, {}),
        (Reduction.SUM, {"add": 7 - 1}),
        (Reduction.MEAN, {"add": 7 - 1, "div": 1}),
    ],
)
def test_reduction_of_seven(reduction: Reduction, operations_of: dict[str, int]) -> None:
    assert losses.reduced(FP32, 7, reduction) == work(FP32, **operations_of)
