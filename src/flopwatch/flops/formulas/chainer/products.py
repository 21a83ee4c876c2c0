"""Functions of Chainer with a product of matrices."""

from __future__ import annotations

from flopwatch.events import Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import contraction
from flopwatch.flops.formulas.chainer.reading import first, inputs_of, numbers, result, setting
from flopwatch.flops.formulas.products import linear, product
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, total, work


@formula("chainer::LinearFunction")
def _linear(op: Op) -> Work:
    x, weight = inputs_of(op)[:2]
    return linear(numbers(op), x.shape[0], weight.shape[1], weight.shape[0], bias=len(inputs_of(op)) > 2)


@formula("chainer::LinearGradData")
def _linear_grad_data(op: Op) -> Work:
    """g W; W and g go in."""
    weight, gradient = inputs_of(op)[:2]
    return product(numbers(op), gradient.shape[0], weight.shape[0], weight.shape[1])


@formula("chainer::LinearGradWeight")
def _linear_grad_weight(op: Op) -> Work:
    """gᵀ x; x and g go in."""
    x, gradient = inputs_of(op)[:2]
    return product(numbers(op), gradient.shape[1], x.shape[0], x.shape[1])


@formula("chainer::MatMul")
def _matmul(op: Op) -> Work:
    """Each element of the result is a sum over the inner dimension, of which `transa` says which one it is."""
    left = first(op).shape
    inner = left[-1] if len(left) == 1 or not setting(op, "transa") else left[-2]
    return work(numbers(op), mac=result(op).size * inner)


@formula("chainer::BatchMatMul")
def _batch_matmul(op: Op) -> Work:
    """Vectors count as matrices of one column."""
    left = first(op).shape if len(first(op).shape) == 3 else (*first(op).shape, 1)
    return work(numbers(op), mac=result(op).size * (left[1] if setting(op, "transa") else left[2]))


@formula("chainer::BatchMatMulGrad")
def _batch_matmul_grad(op: Op) -> Work:
    """A product for each of both factors, as large as the one forward."""
    left, right = (array.shape if len(array.shape) == 3 else (*array.shape, 1) for array in inputs_of(op)[:2])
    rows, inner = (left[2], left[1]) if setting(op, "transa") else (left[1], left[2])
    columns = right[1] if setting(op, "transb") else right[2]
    return 2 * product(numbers(op), rows, inner, columns, batch=left[0])


@formula("chainer::EinSum")
def _einsum(op: Op) -> Work | Unknown:
    """Einstein's sum; dots are written as @."""
    terms, made = setting(op, "in_subs"), setting(op, "out_sub")
    if not isinstance(terms, str) or not isinstance(made, str):
        return Unknown(op.name)
    equation = f"{terms}->{made}".replace("@", "...")
    return contraction.einsum(numbers(op), equation, [array.shape for array in inputs_of(op)])


@formula("chainer::DiagEinSum")
def _diagonal_einsum(op: Op) -> Work | Unknown:
    """Einstein's sum whose result is put on a diagonal or repeated, which is free."""
    return _einsum(op)


@formula("chainer::TensorDot")
def _tensordot(op: Op) -> Work | Unknown:
    """Each element of the result is a sum over the axes of the first array that `a_axes` names as summed, the second of two lists."""
    axes = setting(op, "a_axes")
    if not axes:
        return Unknown(op.name)
    summed = 1
    for axis in axes[1]:
        summed *= first(op).shape[axis]
    return work(numbers(op), mac=result(op).size * summed)


@formula("chainer::BilinearFunction")
def _bilinear(op: Op) -> Work:
    """Σ_ij e1_i · W_ijk · e2_j as Einstein's sum, pair by pair; with e1 · V1, e2 · V2 and b where they are given."""
    return _bilinear_sum(op, "ai,aj,ijk->ak", inputs_of(op)[:3])


def _bilinear_sum(op: Op, equation: str, arrays: list) -> Work:  # type: ignore[type-arg]
    return contraction.einsum(numbers(op), equation, [array.shape for array in arrays])


@formula("chainer::BilinearFunctionGrad")
def _bilinear_grad(op: Op) -> Work:
    """The same sum with the gradient in the place of each of the three factors."""
    one, two, weight, gradient = inputs_of(op)[:4]
    return total(
        (
            _bilinear_sum(op, "aj,ijk,ak->ai", [two, weight, gradient]),
            _bilinear_sum(op, "ai,ijk,ak->aj", [one, weight, gradient]),
            _bilinear_sum(op, "ai,aj,ak->ijk", [one, two, gradient]),
        )
    )
