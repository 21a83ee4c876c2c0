"""Products of dense matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, total, work
from flopwatch.flops.formulas.aten.sparse import by_dense, is_sparse
from flopwatch.flops.formulas.epilogue import unary
from flopwatch.flops.formulas.products import broadcast, linear, matmul, product


@formula("aten::mm", "aten::_int_mm")
def mm(op: Op) -> Work | Unknown:
    """(rows, inner) by (inner, columns)."""
    left: Array = op.arguments["self"]
    right: Array = op.arguments["mat2"]
    if is_sparse(left, right):
        return by_dense(op, left, right)
    rows, inner = left.shape
    return product(left, rows, inner, right.shape[1])


@formula("aten::bmm")
def bmm(op: Op) -> Work | Unknown:
    """(batch, rows, inner) by (batch, inner, columns)."""
    left: Array = op.arguments["self"]
    right: Array = op.arguments["mat2"]
    if is_sparse(left, right):
        return by_dense(op, left, right)
    batch, rows, inner = left.shape
    return product(left, rows, inner, right.shape[2], batch=batch)


@formula("aten::addmm")
def addmm(op: Op) -> Work | Unknown:
    """A product added to `self`, each times a scalar."""
    given = op.arguments
    left: Array = given["mat1"]
    right: Array = given["mat2"]
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    if is_sparse(left, right):
        return by_dense(op, left, right, addend=given["self"].size, alpha=alpha, beta=beta)
    rows, inner = left.shape
    return product(left, rows, inner, right.shape[1], addend=given["self"].size, alpha=alpha, beta=beta)


@formula("aten::baddbmm")
def baddbmm(op: Op) -> Work:
    """A batch of products added to `self`, each times a scalar."""
    given = op.arguments
    left: Array = given["batch1"]
    batch, rows, inner = left.shape
    return product(
        left,
        rows,
        inner,
        given["batch2"].shape[2],
        batch=batch,
        addend=given["self"].size,
        alpha=given.get("alpha", 1),
        beta=given.get("beta", 1),
    )


@formula("aten::addbmm")
def addbmm(op: Op) -> Work:
    """All products of a batch, added up: that is one product with the batch in the inner dimension."""
    given = op.arguments
    left: Array = given["batch1"]
    batch, rows, inner = left.shape
    return product(
        left,
        rows,
        batch * inner,
        given["batch2"].shape[2],
        addend=given["self"].size,
        alpha=given.get("alpha", 1),
        beta=given.get("beta", 1),
    )


@formula("aten::mv")
def mv(op: Op) -> Work | Unknown:
    """A matrix by a vector."""
    left: Array = op.arguments["self"]
    if is_sparse(left):
        return by_dense(op, left, op.arguments["vec"])
    return product(left, left.shape[0], left.shape[1], 1)


@formula("aten::addmv")
def addmv(op: Op) -> Work:
    """A matrix by a vector, added to `self`."""
    given = op.arguments
    left: Array = given["mat"]
    alpha, beta = given.get("alpha", 1), given.get("beta", 1)
    return product(left, left.shape[0], left.shape[1], 1, addend=given["self"].size, alpha=alpha, beta=beta)


@formula("aten::dot", "aten::vdot")
def dot(op: Op) -> Work:
    """Two vectors; to conjugate one is a change of sign."""
    left: Array = op.arguments["self"]
    return product(left, 1, left.size, 1)


@formula("aten::inner")
def inner(op: Op) -> Work:
    """Sums over the last dimensions of both; a scalar is multiplied with everything."""
    left: Array = op.arguments["self"]
    right: Array = op.arguments["other"]
    if not left.shape or not right.shape:
        return work(left, mul=left.size * right.size)
    return product(left, prod(left.shape[:-1]), left.shape[-1], prod(right.shape[:-1]))


@formula("aten::linalg_vecdot")
def vecdot(op: Op) -> Work:
    """Vectors along `dim` of both, everything else broadcast."""
    left: Array = op.arguments["x"]
    return work(left, mac=prod(broadcast(left.shape, op.arguments["y"].shape)))


@formula("aten::outer", "aten::ger")
def outer(op: Op) -> Work:
    """Each element of a vector by each of another: multiplications, without anything to accumulate."""
    left: Array = op.arguments["self"]
    return work(left, mul=left.size * op.arguments["vec2"].size)


@formula("aten::addr")
def addr(op: Op) -> Work:
    """The outer product of two vectors added to `self`."""
    given = op.arguments
    left: Array = given["vec1"]
    addend: Array = given["self"]
    size = left.size * given["vec2"].size
    added = given.get("beta", 1) != 0
    scaled = (0 if given.get("beta", 1) in (0, 1) else addend.size) + (0 if given.get("alpha", 1) == 1 else size)
    return work(left, mul=size + scaled, add=size if added else 0)


@formula("aten::linear", "aten::mkldnn_linear", "mkl::_mkl_linear")
def dense(op: Op) -> Work | Unknown:
    """x Wᵀ + b with W (outputs, inputs), or (inputs,) for a single output; x of any number of dimensions."""
    given = op.arguments
    if "X" in given:
        inputs, weight, bias = given["X"], given["ORI_W"], given.get("B")
    else:
        inputs, weight, bias = given.get("input") or given["self"], given["weight"], given.get("bias")
    outputs = weight.shape[0] if len(weight.shape) == 2 else 1
    if op.name == "aten::linear" and is_sparse(inputs, weight):
        turned = Array(weight.shape[::-1], weight.dtype, nonzero=weight.nonzero)
        rows = Array((prod(inputs.shape[:-1]), inputs.shape[-1]), inputs.dtype, nonzero=inputs.nonzero)
        return by_dense(op, rows, turned, addend=0 if bias is None else outputs)
    return linear(inputs, prod(inputs.shape[:-1]), inputs.shape[-1], outputs, bias=bias is not None)


@formula("aten::linear_backward", "aten::mkldnn_linear_backward")
def dense_backward(op: Op) -> Work:
    """`output_mask` says whether the gradients by input, weights and bias are wanted."""
    given = op.arguments
    return gradients_of_dense(given["grad_output"], given["weight"], *given["output_mask"])


@formula("aten::mkldnn_linear_backward_input")
def dense_backward_input(op: Op) -> Work:
    """The gradient by the input alone."""
    return gradients_of_dense(op.arguments["grad_output"], op.arguments["weight"], True, False, False)


@formula("aten::mkldnn_linear_backward_weights")
def dense_backward_weights(op: Op) -> Work:
    """The gradients by weights and perhaps bias."""
    given = op.arguments
    return gradients_of_dense(given["grad_output"], given["weight"], False, True, given["bias_defined"])


def gradients_of_dense(gradient: Array, weight: Array, by_input: bool, by_weight: bool, by_bias: bool) -> Work:
    """Each product as large as the forward's; the bias sums over all positions."""
    outputs = weight.shape[0]
    positions = gradient.size // outputs if outputs else 0
    return work(
        gradient,
        mac=(by_input + by_weight) * positions * weight.size,
        add=outputs * max(0, positions - 1) if by_bias else 0,
    )


@formula("aten::matmul", "aten::linalg_matmul")
def multiply(op: Op) -> Work | Unknown:
    """Vectors, matrices or batches of them."""
    left: Array = op.arguments["self"]
    right: Array = op.arguments["other"]
    if is_sparse(left, right):
        return by_dense(op, left, right)
    return matmul(left, left.shape, right.shape)


@formula("aten::matmul_backward")
def multiply_backward(op: Op) -> Work:
    """Each gradient pairs the same numbers as the forward; one that was broadcast is summed to its shape."""
    given = op.arguments
    left: Array = given["self"]
    right: Array = given["other"]
    gradient: Array = given["grad"]
    forward = matmul(left, left.shape, right.shape)
    sums = 0
    for array, wanted in zip((left, right), given["mask"], strict=True):
        if wanted and len(array.shape) > 1:
            batch = prod(gradient.shape[: max(0, len(gradient.shape) - 2)])
            sums += max(0, batch // max(1, prod(array.shape[:-2])) - 1) * array.size
    both = sum(map(bool, given["mask"]))
    return both * forward + work(left, add=sums)


@formula("aten::_addmm_activation")
def addmm_activation(op: Op) -> Work | Unknown:
    """addmm, and relu or gelu of it; of gelu the exact form, which some backends approximate."""
    made = addmm(op)
    left: Array = op.arguments["mat1"]
    size = left.shape[0] * op.arguments["mat2"].shape[1]
    after = unary(left, "gelu" if op.arguments.get("use_gelu", False) else "relu", size)
    return made + after if isinstance(made, Work) and after is not None else Unknown(op.name)


@formula("aten::_foreach_mm")
def foreach_mm(op: Op) -> Work:
    """A list of products."""
    pairs: Sequence[tuple[Array, Array]] = list(zip(op.arguments["self"], op.arguments["mat2"], strict=True))
    return total(matmul(left, left.shape, right.shape) for left, right in pairs)


@formula("aten::_grouped_mm")
def grouped(op: Op) -> Work:
    """Products of groups of rows, of columns or of the inner dimension; where the groups end does not change their sum.

    Tensors of three dimensions have one matrix for each group, those of two share their rows, columns or inner dimension out
    between the groups: (tokens, inner) by (groups, inner, columns) is a layer of experts. All tokens count: `offs`, which says
    where groups end, holds data.
    """
    left: Array = op.arguments["self"]
    return grouped_product(left, op.arguments["mat2"], op.arguments.get("bias"), left)


def grouped_product(left: Array, right: Array, bias: Array | None, numbers: Array, stretch: int = 1) -> Work:
    """`stretch` is how many numbers lie in one element of the inner dimension."""
    batch = left.shape[0] if len(left.shape) == len(right.shape) == 3 else 1
    rows, inner = left.shape[-2:]
    columns = right.shape[-1]
    outputs = batch * rows * columns
    if len(left.shape) == len(right.shape) == 2:
        # One result for each group, all of the same size; how many groups there are is not seen from the products.
        return work(numbers, mac=rows * inner * stretch * columns)
    return work(numbers, mac=outputs * inner * stretch, add=0 if bias is None else outputs)


@formula("inductor::_mm_plus_mm")
def mm_plus_mm(op: Op) -> Work:
    """A B + C D."""
    first, second, third, fourth = (op.arguments[name] for name in "abcd")
    works = (matmul(first, first.shape, second.shape), matmul(third, third.shape, fourth.shape))
    return total(works) + work(first, add=first.shape[0] * second.shape[1])
