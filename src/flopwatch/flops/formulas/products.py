"""Products of matrices and vectors: what of them is multiply-accumulates, and what is added after."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


def product(
    numbers: Numbers | Array,
    rows: int,
    inner: int,
    columns: int,
    *,
    batch: int = 1,
    addend: int = 0,
    alpha: object = 1,
    beta: object = 1,
) -> Work:
    """`batch` products of matrices (rows, inner) and (inner, columns): alpha A B + beta C.

    rows · inner · columns multiply-accumulates each, the first of a sum too (Golub and Van Loan, Matrix Computations, 1.1).
    `addend` is the number of elements of C (0: there is none), which is spread over the result: one addition for each element
    of the result. A scalar that is not 1 is one multiplication for each element that it scales; a C that is scaled by 0
    is not read.
    """
    mac = batch * rows * inner * columns
    if not addend and alpha == 1:
        return work(numbers, mac=mac)
    outputs = batch * rows * columns
    added = addend if beta != 0 else 0
    scaled = (0 if alpha == 1 else outputs) + (0 if beta == 1 else added)
    return work(numbers, mac=mac, add=outputs if added else 0, mul=scaled)


def linear(numbers: Numbers | Array, positions: int, inputs: int, outputs: int, *, bias: bool = False) -> Work:
    """y = x Wᵀ + b for each of so many positions, all leading dimensions of x together."""
    return work(numbers, mac=positions * inputs * outputs, add=positions * outputs if bias else 0)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of several: aligned at their last dimensions, where 1 stretches to anything.

    ValueError if they do not go together.
    """
    common: list[int] = []
    for place in range(max(map(len, shapes), default=0)):
        sizes = {shape[-1 - place] for shape in shapes if place < len(shape)} - {1}
        if len(sizes) > 1:
            raise ValueError(f"shapes do not go together: {', '.join(map(str, shapes))}")
        common.append(sizes.pop() if sizes else 1)
    return tuple(reversed(common))


def matmul(numbers: Numbers | Array, left: Sequence[int], right: Sequence[int]) -> Work:
    """The product of numpy's matmul: vectors are rows on the left and columns on the right, all dimensions before the last
    two are broadcast.
    """
    rows, inner = (1, left[0]) if len(left) == 1 else left[-2:]
    columns = 1 if len(right) == 1 else right[-1]
    return product(numbers, rows, inner, columns, batch=prod(broadcast(left[:-2], right[:-2])))
