"""Losses. `rows` are the samples, `elements` all numbers that are compared, `Reduction` what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from flopwatch.events import Array
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.reductions import mean, steps, summed
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


class Reduction(IntEnum):
    """What becomes of the losses of all samples; the numbers are PyTorch's."""

    NONE = 0
    MEAN = 1
    SUM = 2


def reduced(numbers: On, elements: int, reduction: int) -> Work:
    """Nothing, the mean or the sum."""
    if reduction == Reduction.MEAN:
        return mean(numbers, elements, 1)
    return summed(numbers, elements, 1) if reduction == Reduction.SUM else Work()


def pointwise(name: str, numbers: On, elements: int, reduction: int) -> Work:
    """A loss that compares number by number, under its name in the table of `elementwise`, and its reduction."""
    return elementwise(name, numbers, elements) + reduced(numbers, elements, reduction)


def binary_cross_entropy(numbers: On, elements: int, reduction: int, *, weight: bool = False) -> Work:
    """-w·(y·log x + (1 - y)·log(1 - x)), both logarithms bounded below by -100."""
    made = pointwise("binary_cross_entropy", numbers, elements, reduction)
    return made + work(numbers, mul=elements) if weight else made


def binary_cross_entropy_backward(numbers: On, elements: int, reduction: int, *, weight: bool = False) -> Work:
    """g·w·(x - y)/max(x·(1 - x), eps), divided by n for the mean."""
    made = elementwise("binary_cross_entropy_backward", numbers, elements)
    return made + work(numbers, mul=elements if weight else 0, div=elements if reduction == Reduction.MEAN else 0)


def binary_cross_entropy_with_logits(
    numbers: On, elements: int, reduction: int, *, weight: bool = False, positive_weight: bool = False
) -> Work:
    """w·((1 - y)·x - q·log σ(x)), with q = (p - 1)·y + 1 for weights p of positive samples, else 1."""
    made = pointwise("binary_cross_entropy_with_logits", numbers, elements, reduction)
    if positive_weight:
        made += work(numbers, add=elements, fma=elements, mul=elements)
    return made + work(numbers, mul=elements) if weight else made


def negative_log_likelihood(numbers: On, rows: int, reduction: int, *, weight: bool = False) -> Work:
    """-w_y·x_y, with y the class of a row: a selection, and a product if classes have weights.

    The mean is their sum, divided by the sum of the weights; without weights, rows are only counted. No row is left out:
    which ones are to be ignored is written in data.
    """
    made = work(numbers, mul=rows if weight else 0)
    if reduction == Reduction.NONE:
        return made
    inner = steps(rows, 1)
    if reduction == Reduction.SUM:
        return made + work(numbers, add=inner)
    return made + work(numbers, add=inner * (2 if weight else 1), div=1)


def negative_log_likelihood_backward(numbers: On, rows: int, reduction: int, *, weight: bool = False) -> Work:
    """-w_y·g in the place of the class; g is divided by the sum of the weights for the mean."""
    return work(numbers, mul=rows if weight else 0, div=1 if reduction == Reduction.MEAN else 0)


def multi_margin(numbers: On, rows: int, classes: int, reduction: int, *, p: float = 1, weight: bool = False) -> Work:
    """Σ_{i ≠ y} max(0, margin - x_y + x_i)^p / classes for each row, times the weight of y.

    margin - x_y once for a row; an addition, a minmax and for p = 2 a square for each other class; their sum, a division.
    """
    others = rows * (classes - 1)
    made = work(
        numbers,
        add=rows + others + steps(others, rows),
        minmax=others,
        mul=(others if p == 2 else 0) + (rows if weight else 0),
        div=rows,
    )
    return made + reduced(numbers, rows, reduction)


def multi_margin_backward(numbers: On, rows: int, classes: int, *, p: float = 1, weight: bool = False) -> Work:
    """For each other class c where its margin is violated, c = g/classes·w, for p = 2 times 2·margin; minus their sum for y.

    The margins are computed again; the comparison with zero is free.
    """
    others = rows * (classes - 1)
    return work(
        numbers,
        add=rows + others + steps(others, rows),
        mul=rows * (1 + weight) + (2 * others if p == 2 else 0),
    )


def connectionist_temporal(numbers: On, lengths: Sequence[int], labels: Sequence[int]) -> Work:
    """CTC (Graves et al. 2006), forward: log α over `lengths` steps and 2·labels + 1 states of each sample.

    Each state after the first step takes the log-sum-exp of three states before (2 minmax, 3 differences, 3 exponentials, 2
    additions, a logarithm, an addition) and adds its log-probability; states whose third source is not allowed are not left
    out, which ones is written in data. At the end the last two states of a sample are taken together.
    """
    states = sum((steps_of - 1) * (2 * label + 1) for steps_of, label in zip(lengths, labels, strict=True) if steps_of)
    rows = sum(1 for label in labels if label)
    return work(
        numbers,
        minmax=2 * states + rows,
        add=7 * states + 4 * rows,
        transcendental=4 * states + 3 * rows,
    )


def connectionist_temporal_backward(
    numbers: On, lengths: Sequence[int], labels: Sequence[int], *, classes: int
) -> Work:
    """CTC, backward: log β over the same states, from behind; log α given.

    Each state before the last step costs what it costs forward; then log α + log β is taken, by log-sum-exp, into the place of
    its label at that step. Of each step and class comes (exp(log p) - exp(place + loss - log p))·g.
    """
    states = ends = values = 0
    for steps_of, label in zip(lengths, labels, strict=True):
        states += max(steps_of - 1, 0) * (2 * label + 1)
        ends += (2 if label else 1) if steps_of else 0
        values += steps_of * classes
    return work(
        numbers,
        minmax=3 * states,
        add=(7 + 1 + 4) * states + ends + 3 * values,
        transcendental=(4 + 3) * states + 2 * values,
        mul=values,
    )
