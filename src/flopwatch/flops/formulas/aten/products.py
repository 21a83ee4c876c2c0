"""Products of matrices and vectors."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula
from flopwatch.flops.formulas.products import linear, matmul, product


@formula("aten::mm", "aten::_int_mm")
def mm(op: Op) -> Work:
    """(rows, inner) by (inner, columns)."""
    left: Array = op.arguments["self"]
    rows, inner = left.shape
    return product(left, rows, inner, op.arguments["mat2"].shape[1])


@formula("aten::bmm")
def bmm(op: Op) -> Work:
    """(batch, rows, inner) by (batch, inner, columns)."""
    left: Array = op.arguments["self"]
    batch, rows, inner = left.shape
    return product(left, rows, inner, op.arguments["mat2"].shape[2], batch=batch)


@formula("aten::addmm")
def addmm(op: Op) -> Work:
    """A product added to `self`, each times a scalar."""
    given = op.arguments
    left: Array = given["mat1"]
    rows, inner = left.shape
    scalars = {"alpha": given.get("alpha", 1), "beta": given.get("beta", 1)}
    return product(left, rows, inner, given["mat2"].shape[1], addend=given["self"].size, **scalars)


@formula("aten::baddbmm")
def baddbmm(op: Op) -> Work:
    """A batch of products added to `self`, each times a scalar."""
    given = op.arguments
    left: Array = given["batch1"]
    batch, rows, inner = left.shape
    scalars = {"alpha": given.get("alpha", 1), "beta": given.get("beta", 1)}
    return product(left, rows, inner, given["batch2"].shape[2], batch=batch, addend=given["self"].size, **scalars)


@formula("aten::linear")
def linear_(op: Op) -> Work:
    """x Wᵀ + b with W (outputs, inputs), or (inputs,) for a single output; x of any number of dimensions."""
    given = op.arguments
    inputs: Array = given["input"]
    weight: Array = given["weight"]
    outputs = weight.shape[0] if len(weight.shape) == 2 else 1
    positions = prod(inputs.shape[:-1])
    return linear(inputs, positions, inputs.shape[-1], outputs, bias=given.get("bias") is not None)


@formula("aten::matmul", "aten::linalg_matmul")
def matmul_(op: Op) -> Work:
    """Vectors, matrices or batches of them."""
    left: Array = op.arguments["self"]
    return matmul(left, left.shape, op.arguments["other"].shape)
