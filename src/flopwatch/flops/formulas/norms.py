"""Normalisations: statistics of groups of numbers, and the numbers shifted and scaled by them.

Arithmetic on constants of the call alone (1 - momentum) is done once and not counted.
"""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.reductions import steps, variance
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


def inverse_deviation(numbers: On, groups: int) -> Work:
    """1/√(variance + eps) of each group."""
    return work(numbers, add=groups, sqrt=groups, div=groups)


def scale_and_shift(numbers: On, elements: int, channels: int, *, weight: bool, bias: bool) -> Work:
    """x·a + b with a = weight/σ and b = bias - mean·a, both made once for each channel; 1/σ is given."""
    return work(
        numbers,
        mul=channels * (weight + (not bias)),
        fma=elements + (channels if bias else 0),
    )


def batch_norm_statistics(numbers: On, elements: int, channels: int) -> Work:
    """Mean and 1/√(variance + eps) of each channel."""
    return variance(numbers, elements, channels) + inverse_deviation(numbers, channels)


def running_statistics(numbers: On, channels: int) -> Work:
    """running·(1 - momentum) + batch·momentum, of mean and variance, the variance divided by n - 1 for it."""
    return work(numbers, mul=2 * channels, fma=2 * channels, div=channels)


def batch_norm(
    numbers: On,
    elements: int,
    channels: int,
    *,
    training: bool,
    running: bool = True,
    weight: bool = True,
    bias: bool = True,
) -> Work:
    """Batch normalisation (arXiv:1502.03167): x·a + b, with a = weight/√(variance + eps), b = bias - mean·a for each channel.

    In training mean and variance are those of the batch, and running ones are updated if there are any; else they are given.
    Nothing is done for no elements.
    """
    if not elements:
        return Work()
    # The sum of what the functions above give, made at once: every network has many of these.
    of_batch = elements if training else 0
    inner = steps(elements, channels) if training else 0
    updated = channels if training and running else 0
    return work(
        numbers,
        add=2 * inner + of_batch + channels,
        mul=of_batch + channels * (weight + (not bias)) + 2 * updated,
        fma=elements + (channels if bias else 0) + 2 * updated,
        div=(3 if training else 1) * channels + updated,
        sqrt=channels,
    )


def batch_norm_sums(numbers: On, elements: int, channels: int, *, bias: bool, weight: bool) -> Work:
    """Of each channel Σ g (`bias`) and Σ g·(x - mean) (`weight`)."""
    inner = steps(elements, channels)
    return work(
        numbers,
        add=(inner if bias else 0) + (elements + inner if weight else 0),
        mul=elements if weight else 0,
    )


def joined_statistics(numbers: On, parts: int, channels: int) -> Work:
    """Mean and 1/σ of each channel from those of several parts of a batch, mean m and 1/s of n samples each.

    mean = Σ n·m / N and variance = Σ n·(s² - eps + (m - mean)²) / N.
    """
    each = parts * channels
    inner = steps(each, channels)
    made = work(numbers, mul=4 * each, add=3 * each + 2 * inner, div=each + 2 * channels)
    return made + inverse_deviation(numbers, channels)


def batch_norm_backward_input(
    numbers: On, elements: int, channels: int, *, weight: bool, centred: bool = False
) -> Work:
    """(g - Σg/n - (x - mean)·(Σ g·(x - mean)/(n·σ²)))·(weight/σ), the sums given; x - mean too if `centred`."""
    return work(
        numbers,
        add=elements + (0 if centred else elements),
        fma=elements,
        mul=elements + channels * (2 + weight),
        div=2 * channels,
    )


def batch_norm_backward(
    numbers: On,
    elements: int,
    channels: int,
    *,
    training: bool,
    weight: bool = True,
    mask: tuple[bool, bool, bool] = (True, True, True),
) -> Work:
    """The gradients of a batch normalisation, of input, weight and bias as `mask` says; 1/σ is given in training.

    In training the input's gradient passes through the statistics (see `batch_norm_backward_input`); else it is g·weight/σ.
    """
    of_input, of_weight, of_bias = mask
    through = of_input and training
    by_mean, by_slope = through or of_bias, through or of_weight
    inner = steps(elements, channels)
    # As in `batch_norm`, the sum of what the functions above give.
    add = (inner if by_mean else 0) + (elements + inner if by_slope else 0)
    mul = (elements if by_slope else 0) + (channels if of_weight else 0)
    if through:
        add += elements
        mul += elements + channels * (2 + weight)
        return work(numbers, add=add, mul=mul, fma=elements, div=2 * channels)
    deviations = channels if not training and (of_weight or of_input) else 0
    if of_input:
        mul += elements + (channels if weight else 0)
    return work(numbers, add=add + deviations, mul=mul, sqrt=deviations, div=deviations)


def layer_norm(numbers: On, elements: int, rows: int, *, weight: bool = True, bias: bool = True) -> Work:
    """(x - mean)/√(variance + eps)·weight + bias over each row (arXiv:1607.06450); group normalisation (arXiv:1803.08494) too.

    Mean, differences, variance, 1/σ; then of each element a product with it, and with the weight and the bias that there are.
    """
    inner = steps(elements, rows)
    return work(
        numbers,
        add=2 * inner + elements + rows + (elements if bias and not weight else 0),
        mul=2 * elements + (elements if weight and not bias else 0),
        fma=elements if weight and bias else 0,
        div=3 * rows,
        sqrt=rows,
    )


def layer_norm_backward(
    numbers: On,
    elements: int,
    rows: int,
    channels: int,
    *,
    weight: bool = True,
    mask: tuple[bool, bool, bool] = (True, True, True),
) -> Work:
    """The gradients of a layer or group normalisation, of input, weight and bias as `mask` says; mean and 1/σ are given.

    With y = (x - mean)/σ and h = g·weight: Σ g and Σ g·y for each of the `channels` of weight and bias, and for the input
    (h - Σh/n - y·(Σ h·y/n))/σ, sums over the row.
    """
    of_input, of_weight, of_bias = mask
    add = mul = fma = div = 0
    if of_input or of_weight:
        add += elements
        mul += elements
    if of_weight:
        add += steps(elements, channels)
        mul += elements
    if of_bias:
        add += steps(elements, channels)
    if of_input:
        add += 2 * steps(elements, rows) + elements
        mul += (2 + weight) * elements
        fma += elements
        div += 2 * rows
    return work(numbers, add=add, mul=mul, fma=fma, div=div)


def rms_norm(numbers: On, elements: int, rows: int, *, weight: bool = True) -> Work:
    """x/√(mean(x²) + eps)·weight over each row (arXiv:1910.07467)."""
    return work(
        numbers,
        mul=(2 + weight) * elements,
        add=steps(elements, rows) + rows,
        div=2 * rows,
        sqrt=rows,
    )


def rms_norm_backward(
    numbers: On,
    elements: int,
    rows: int,
    channels: int,
    *,
    weight: bool = True,
    mask: tuple[bool, bool] = (True, True),
) -> Work:
    """The gradients of input and weight as `mask` says, 1/σ given: with y = x/σ and h = g·weight, Σ g·y and (h - y·(Σ h·y/n))/σ."""
    of_input, of_weight = mask
    made = work(numbers, mul=elements) if of_input or of_weight else Work()
    if of_weight:
        made += work(numbers, mul=elements, add=steps(elements, channels))
    if of_input:
        made += work(numbers, mul=(2 + weight) * elements, add=steps(elements, rows), fma=elements, div=rows)
    return made


def weight_norm(numbers: On, elements: int, rows: int) -> Work:
    """v·(g/‖v‖), a norm for each row (arXiv:1602.07868): squares, their sum and its root, a quotient, products."""
    return work(numbers, mul=2 * elements, add=steps(elements, rows), sqrt=rows, div=rows)


def weight_norm_backward(numbers: On, elements: int, rows: int) -> Work:
    """With s = Σ h·v, gradient h: s/‖v‖ for g, and (h - v·(s/‖v‖²))·(g/‖v‖) for v."""
    return work(numbers, mul=2 * elements, add=steps(elements, rows), fma=elements, div=3 * rows)


def local_response_norm(numbers: On, elements: int, window_sum: int) -> Work:
    """x/(k + alpha/size·Σ x²)^beta, the sum over neighbouring channels; `window_sum` is how many squares all sums hold.

    Squares, a sum for each element, a multiply-add, a power and a quotient.
    """
    return work(
        numbers,
        mul=elements,
        add=steps(window_sum, elements),
        fma=elements,
        transcendental=elements,
        div=elements,
    )
