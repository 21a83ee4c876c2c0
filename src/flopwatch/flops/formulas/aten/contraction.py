"""Einstein's sums and their kin, chains and powers of matrices, distances."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, numbers_of, work
from flopwatch.flops.formulas.contraction import chain, contract, einsum, power_products
from flopwatch.flops.formulas.distances import distances, distances_backward
from flopwatch.flops.formulas.factorisations import inverse
from flopwatch.flops.formulas.products import broadcast, product


@formula("aten::einsum")
def einsum_(op: Op) -> Work | Unknown:
    """Pairs from the left, or as `path` has it; the form with sublists comes without names and stays unknown."""
    given = op.arguments
    if "equation" not in given:
        return Unknown(op.name)
    tensors: Sequence[Array] = given["tensors"]
    return einsum(tensors[0], given["equation"], [each.shape for each in tensors], given.get("path"))


@formula("aten::tensordot")
def tensordot(op: Op) -> Work:
    """Sums over pairs of dimensions; where one of a pair is 1, the other is summed first."""
    given = op.arguments
    left: Array = given["self"]
    right: Array = given["other"]
    ours, theirs = list(left.shape), list(right.shape)
    sums = 0
    summed = 1
    for one, other in zip(given["dims_self"], given["dims_other"], strict=True):
        if ours[one] != theirs[other]:
            for sizes, place in ((ours, one), (theirs, other)):
                sums += prod(sizes) - prod(sizes) // max(1, sizes[place])
                sizes[place] = 1
        summed *= ours[one]
    inner = max(1, summed)
    made = work(left, add=sums)
    return made + product(left, prod(ours) // inner, summed, prod(theirs) // inner)


@formula("aten::kron")
def kron(op: Op) -> Work:
    """Each element by each: multiplications alone."""
    left: Array = op.arguments["self"]
    return work(left, mul=left.size * op.arguments["other"].size)


@formula("aten::_trilinear")
def trilinear(op: Op) -> Work:
    """Three tensors are given further dimensions (`expand…`), multiplied and summed over `sumdim`: the first two, then the third."""
    given = op.arguments
    tensors: list[Array] = [given["i1"], given["i2"], given["i3"]]
    named = [_expanded(tensor, given[f"expand{place}"]) for place, tensor in enumerate(tensors, 1)]
    kept = set(named[0]) - {str(dim) for dim in given["sumdim"]}
    later = {name for name, size in named[2].items() if size != 1}
    first, made = contract(tensors[0], named[0], named[1], kept | later)
    made = {**dict.fromkeys(named[0], 1), **made}
    second, _ = contract(tensors[0], made, named[2], kept)
    return first + second


def _expanded(array: Array, dims: Sequence[int]) -> dict[str, int]:
    sizes = list(array.shape)
    for dim in sorted(dims):
        sizes.insert(dim, 1)
    return {str(place): size for place, size in enumerate(sizes)}


@formula("aten::bilinear")
def bilinear(op: Op) -> Work:
    """y = xᵀ W z + b with W (outputs, inputs, inputs): the weights by x first, then each result by z."""
    given = op.arguments
    first: Array = given["input1"]
    weight: Array = given["weight"]
    outputs, _, width = weight.shape
    positions = prod(first.shape[:-1])
    bias = given.get("bias") is not None
    return work(first, mac=positions * (weight.size + outputs * width), add=positions * outputs if bias else 0)


@formula("aten::chain_matmul")
def chain_matmul(op: Op) -> Work:
    """In the cheapest order."""
    matrices: Sequence[Array] = op.arguments["matrices"]
    return _chain(matrices)


@formula("aten::linalg_multi_dot")
def multi_dot(op: Op) -> Work:
    """In the cheapest order; the first and the last may be vectors."""
    return _chain(op.arguments["tensors"])


def _chain(matrices: Sequence[Array]) -> Work:
    first = matrices[0]
    sizes = [1, first.shape[0]] if len(first.shape) == 1 else list(first.shape)
    for matrix in matrices[1:]:
        sizes.append(1 if len(matrix.shape) == 1 else matrix.shape[1])
    return chain(first, sizes)


@formula("aten::linalg_matrix_power", "aten::matrix_power")
def matrix_power(op: Op) -> Work:
    """Repeated squaring; a negative power is that of the inverse."""
    matrix: Array = op.arguments["self"]
    exponent: int = op.arguments["n"]
    width = matrix.shape[-1]
    made = work(matrix, mac=power_products(abs(exponent)) * matrix.size * width)
    return made if exponent >= 0 else prod(matrix.shape[:-2]) * inverse(numbers_of(matrix), width) + made


@formula("aten::_compute_linear_combination")
def linear_combination(op: Op) -> Work:
    """(outputs, inputs) coefficients by the first dimension of a tensor, of whatever shape behind it."""
    inputs: Array = op.arguments["input"]
    coefficients: Array = op.arguments["coefficients"]
    return work(inputs, mac=coefficients.shape[0] * inputs.size)


@formula("aten::cdist", "aten::_cdist_forward", "aten::_euclidean_dist")
def cdist(op: Op) -> Work:
    """All pairs of a row of (…, rows, width) and one of (…, rows, width)."""
    given = op.arguments
    left: Array = given["x1"]
    right: Array = given["x2"]
    pairs = prod(broadcast(left.shape[:-2], right.shape[:-2])) * left.shape[-2] * right.shape[-2]
    return distances(left, pairs, left.shape[-1], float(given.get("p", 2.0)))


@formula("aten::_cdist_backward")
def cdist_backward(op: Op) -> Work:
    """The gradient by the first of both."""
    given = op.arguments
    gradient: Array = given["grad_output"]
    left: Array = given["x1"]
    sums = gradient.size // gradient.shape[-1] if gradient.size else 0
    return distances_backward(left, gradient.size, sums, left.shape[-1], float(given["p"]))


@formula("aten::pdist", "aten::_pdist_forward")
def pdist(op: Op) -> Work:
    """All pairs of two rows."""
    rows: Array = op.arguments["self"]
    count, width = rows.shape
    return distances(rows, count * (count - 1) // 2, width, float(op.arguments.get("p", 2.0)))


@formula("aten::_pdist_backward")
def pdist_backward(op: Op) -> Work:
    """As for all pairs, and each pair gives to both of its rows: one addition and one subtraction for each number."""
    given = op.arguments
    rows: Array = given["self"]
    count, width = rows.shape
    pairs = count * (count - 1) // 2
    power = float(given["p"])
    if power == 0 or not pairs:
        return Work()
    one_side = distances_backward(rows, pairs, pairs, width, inf if power == inf else power)
    return one_side + work(rows, add=(2 * pairs - count) * width)
