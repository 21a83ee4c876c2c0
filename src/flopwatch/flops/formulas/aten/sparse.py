"""Products with sparse matrices: the elements that are held are worked on, the others are not.

`Array.nonzero` tells how many elements a sparse tensor holds, explicit zeros too; what is not told is unknown, not dense.
"""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, work


def is_sparse(*arrays: Array) -> bool:
    """Whether any of them is sparse."""
    return any(array.nonzero is not None for array in arrays)


def by_dense(
    op: Op, left: Array, right: Array, *, addend: int = 0, alpha: object = 1, beta: object = 1
) -> Work | Unknown:
    """A sparse matrix by a dense one, or the other way round: each element that is held meets a row or column of the other.

    Two sparse ones are unknown: how often their elements meet is not seen from their numbers.
    """
    if left.nonzero is not None and right.nonzero is not None:
        return Unknown(op.name)
    columns = 1 if len(right.shape) == 1 else right.shape[-1]
    rows = left.shape[-2]
    if left.nonzero is not None:
        held, width = left.nonzero, columns
    else:
        held, width = right.nonzero or 0, rows
    if held < 0:
        return Unknown(op.name)
    outputs = prod(left.shape[:-1]) * columns
    added = addend if beta != 0 else 0
    scaled = (0 if alpha == 1 else outputs) + (0 if beta == 1 else added)
    return work(left, mac=held * width, add=outputs if added else 0, mul=scaled)


@formula("aten::_sparse_mm", "aten::smm", "aten::hspmm", "aten::_sparse_mm_reduce_impl")
def sparse_mm(op: Op) -> Work | Unknown:
    """A sparse matrix by a dense one. Sums and means accumulate; the least or greatest of products is not a product's work."""
    given = op.arguments
    left: Array = given.get("sparse") or given.get("mat1") or given["self"]
    right: Array = given.get("dense") or given.get("mat2") or given["other"]
    reduce = given.get("reduce", "sum")
    if not is_sparse(left, right) or reduce not in ("sum", "mean"):
        return Unknown(op.name)
    found = by_dense(op, left, right)
    if reduce == "mean" and isinstance(found, Work):
        return found + work(left, div=left.shape[0] * right.shape[1])
    return found


@formula("aten::_sparse_mm_reduce_impl_backward")
def sparse_mm_backward(op: Op) -> Work | Unknown:
    """Of sums: by each element that is held, and by the dense matrix, as many products as the forward."""
    given = op.arguments
    held = given["self"].nonzero
    if held is None or held < 0 or given["reduce"] != "sum":
        return Unknown(op.name)
    gradient: Array = given["grad_out"]
    return work(gradient, mac=sum(map(bool, given["output_mask"])) * held * gradient.shape[-1])


@formula("aten::_sparse_addmm", "aten::sspaddmm")
def sparse_addmm(op: Op) -> Work | Unknown:
    """The same, added to `self`."""
    given = op.arguments
    left: Array = given["mat1"]
    right: Array = given["mat2"]
    if not is_sparse(left, right):
        return Unknown(op.name)
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    addend: Array = given["self"]
    return by_dense(op, left, right, addend=addend.size, alpha=alpha, beta=beta)


@formula("aten::sparse_sampled_addmm")
def sampled_addmm(op: Op) -> Work | Unknown:
    """A dense product, of which only the elements that `self` holds are made, added to these."""
    given = op.arguments
    sampled: Array = given["self"]
    if sampled.nonzero is None or sampled.nonzero < 0:
        return Unknown(op.name)
    left: Array = given["mat1"]
    held = sampled.nonzero
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    scaled = (0 if alpha == 1 else held) + (0 if beta in (0, 1) else held)
    return work(left, mac=held * left.shape[-1], add=0 if beta == 0 else held, mul=scaled)


@formula("aten::_sparse_semi_structured_mm", "aten::_sparse_semi_structured_addmm")
def half_mm(op: Op) -> Work:
    """`mat1` holds two of every four numbers: (rows, inner / 2). Only these are multiplied."""
    given = op.arguments
    left: Array = given["mat1"]
    outputs = left.shape[0] * given["mat2"].shape[1]
    addend: Array | None = given.get("input")
    mac = outputs * left.shape[1]
    if addend is None:
        return work(left, mac=mac)
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    scaled = (0 if alpha == 1 else outputs) + (0 if beta in (0, 1) else addend.size)
    return work(left, mac=mac, add=0 if beta == 0 else outputs, mul=scaled)


@formula("aten::_sparse_semi_structured_linear")
def half_linear(op: Op) -> Work | Unknown:
    """`weight` (outputs, inputs / 2) holds two of every four numbers."""
    given = op.arguments
    inputs: Array = given["input"]
    weight: Array = given["weight"]
    outputs = prod(inputs.shape[:-1]) * weight.shape[0]
    activation = given.get("activation")
    if activation not in (None, "none", "relu", "silu"):
        return Unknown(op.name)
    minmax = outputs if activation == "relu" else 0
    made = work(inputs, mac=outputs * weight.shape[1], add=0 if given.get("bias") is None else outputs, minmax=minmax)
    if activation == "silu":
        return made + work(inputs, add=outputs, mul=outputs, div=outputs, transcendental=outputs)
    return made


@formula("aten::_cslt_sparse_mm")
def half_packed_mm(op: Op) -> Work | Unknown:
    """The first matrix is packed with half of its numbers; its rows are seen from the result."""
    given = op.arguments
    result = op.outputs[0] if op.outputs else None
    right: Array = given["dense_B"]
    if result is None:
        return Unknown(op.name)
    mac = result.size * right.shape[0] // 2
    scaled = 0 if given.get("alpha") is None else result.size
    return work(right, mac=mac, add=0 if given.get("bias") is None else result.size, mul=scaled)
