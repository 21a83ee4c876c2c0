"""Products of quantised numbers: integers with scales, or floating-point numbers by quantised weights.

What is done to integers beside the product (zero points, a bias in the accumulator, limits) is free, as everywhere. Scales
are applied in single precision.
"""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.quantisation import dequantised, parameters, quantised
from flopwatch.flops.formulas.work import Numbers, Work, total, work
from flopwatch.flops.operations import DType

SINGLE = Numbers(DType.FP32)
BYTES = Numbers(DType.INT8)


def integer_product(mac: int, outputs: int, *, padding: int = 0) -> Work:
    """Integers by integers, and each result by the ratio of the scales, whether integers or real numbers come out."""
    return work(BYTES, mac=mac, padding=padding) + dequantised(SINGLE, outputs)


def dynamic_product(inputs: int, mac: int, outputs: int, *, bias: bool, padding: int = 0, calls: int = 1) -> Work:
    """Real inputs are quantised by their least and largest, multiplied by integer weights, and scaled back; a real bias.

    All is of so many `calls` together, each of which looks for the least and largest of its own inputs.
    """
    return total(
        (
            parameters(SINGLE, inputs, calls),
            quantised(SINGLE, inputs, calls),
            integer_product(mac, outputs, padding=padding),
            work(SINGLE, add=outputs if bias else 0),
        )
    )


def weights_by_column(numbers: Numbers | Array, rows: int, inner: int, columns: int) -> Work:
    """Real numbers by integer weights with one scale for each column: each result by it."""
    return work(numbers, mac=rows * inner * columns, mul=rows * columns)


def weights_by_group(numbers: Numbers | Array, rows: int, inner: int, columns: int) -> Work:
    """Real numbers by integer weights, each of which is made real first: q · scale + zero, a product and a sum."""
    return work(numbers, mac=rows * inner * columns, fma=inner * columns)


def scaled_product(
    numbers: Numbers,
    mac: int,
    outputs: int,
    *,
    inner: int,
    blocks: int | None = None,
    matrices: int = 1,
    bias: bool = False,
) -> Work:
    """Real numbers of few bits by such, where scales make them real numbers of more.

    `blocks` None: one scale for each of both matrices; their product, and each result by it. Otherwise so many scales for each
    row of the left and each column of the right: the partial sum of each block of the inner dimension by both. Bias: a sum
    for each result.
    """
    products = matrices + outputs if blocks is None else 2 * outputs * min(blocks, max(1, inner))
    return work(numbers, mac=mac) + work(SINGLE, mul=products, add=outputs if bias else 0)
