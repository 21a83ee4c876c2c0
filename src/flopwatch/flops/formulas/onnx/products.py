"""Products of matrices and tensors, of integers and packed weights too."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas.contraction import einsum
from flopwatch.flops.formulas.distances import distances
from flopwatch.flops.formulas.factorisations import determinant, inverse
from flopwatch.flops.formulas.onnx.arguments import given, has, result
from flopwatch.flops.formulas.onnx.elementwise import activation
from flopwatch.flops.formulas.products import matmul, product
from flopwatch.flops.formulas.reductions import softmax
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


@formula("onnx::MatMul", "onnx::MatMulInteger", "com.microsoft::MatMulInteger16")
def product_of(op: Op) -> Work:
    """A·B with the dimensions before the last two broadcast, vectors as rows and columns; integers come out as int32."""
    left, right = given(op, "A"), given(op, "B")
    return matmul(left, left.shape, right.shape)


@formula("onnx::QLinearMatMul")
def quantized(op: Op) -> Work:
    """Integers with a scale: a·b as OP, the sums scaled to the integers of the result.

    One product for each element, and for each scale of the weights a product and a quotient before.
    """
    left, right, scale, made = given(op, "a"), given(op, "b"), given(op, "b_scale"), result(op)
    scaled = work(given(op, "a_scale"), mul=made.size + scale.size, div=scale.size)
    return matmul(left, left.shape, right.shape) + scaled


@formula("onnx::Gemm")
def general(op: Op) -> Work:
    """alpha·A·B + beta·C, A and B transposed where asked for."""
    left, right = given(op, "A"), given(op, "B")
    rows, inner = _turned(left.shape, op.arguments.get("transA"))
    columns = _turned(right.shape, op.arguments.get("transB"))[1]
    addend = op.arguments.get("C")
    return product(
        left,
        rows,
        inner,
        columns,
        addend=addend.size if isinstance(addend, Array) else 0,
        alpha=op.arguments.get("alpha", 1.0),
        beta=op.arguments.get("beta", 1.0),
    )


def _turned(shape: Sequence[int], turn: object) -> Sequence[int]:
    return shape[::-1] if turn else shape


@formula("onnx::Einsum")
def einstein(op: Op) -> Work:
    """Einstein's sum, pairs from the left."""
    arrays = op.arguments["Inputs"]
    return einsum(arrays[0], op.arguments["equation"], [array.shape for array in arrays])


@formula("onnx::Det")
def det(op: Op) -> Work:
    """Determinants of a batch of matrices."""
    array = given(op, "X")
    n = array.shape[-1]
    return prod(array.shape[:-2]) * determinant(numbers_of(array), n)


@formula("com.microsoft::Inverse")
def inverted(op: Op) -> Work:
    """Inverses of a batch of matrices."""
    array = given(op, "X")
    return prod(array.shape[:-2]) * inverse(numbers_of(array), array.shape[-1])


@formula("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul", "com.microsoft::FusedMatMulActivation")
def fused(op: Op) -> Work | Unknown:
    """activation(alpha·A·B), with the last two dimensions of each, or its batch and its rows, exchanged."""
    left = _fused(given(op, "A").shape, op.arguments.get("transA"), op.arguments.get("transBatchA"))
    right = _fused(given(op, "B").shape, op.arguments.get("transB"), op.arguments.get("transBatchB"))
    made = result(op)
    after = activation(op.arguments.get("activation"), made)
    if isinstance(after, Unknown):
        return after
    scaled = made.size if op.arguments.get("alpha", 1.0) != 1.0 else 0
    return matmul(given(op, "A"), left, right) + work(made, mul=scaled) + after


def _fused(shape: Sequence[int], turn: object, batch: object) -> Sequence[int]:
    if batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if turn and len(shape) > 1 else shape


@formula("com.microsoft::FusedGemm")
def fused_general(op: Op) -> Work | Unknown:
    """activation(alpha·A·B + beta·C)."""
    after = activation(op.arguments.get("activation"), result(op))
    return after if isinstance(after, Unknown) else general(op) + after


@formula("com.microsoft::GemmFastGelu")
def gelu_of_product(op: Op) -> Work | Unknown:
    """The GELU, by tanh, of X·W + bias."""
    made, left, right = result(op), given(op, "X"), given(op, "W")
    after = activation("fastgelu", made)
    if isinstance(after, Unknown):
        return after
    return matmul(left, left.shape, right.shape) + work(made, add=made.size if has(op, "bias") else 0) + after


@formula("com.microsoft::MatMulNBits", "com.microsoft::MatMulBnb4")
def packed(op: Op) -> Work:
    """A times weights of few bits, (N, K) of them, plus a bias.

    The product is made on the numbers of A; the weights are numbers of that kind again before: for each a product with the scale
    of its block, and a subtraction of its zero point where there is one. (A table of values, as the 4-bit floats have, is free
    to look up.)
    """
    left, made = given(op, "A"), result(op)
    columns, inner = op.arguments["N"], op.arguments["K"]
    rows = left.size // inner if inner else 0
    weights = columns * inner
    unpacked = work(left, mul=weights, add=weights if has(op, "zero_points") else 0)
    bias = work(left, add=made.size if has(op, "bias") else 0)
    return product(left, rows, inner, columns) + unpacked + bias


@formula("com.microsoft::MatMulIntegerToFloat")
def scaled_integers(op: Op) -> Work:
    """Integers A·B as OP, the sums times both scales, plus a bias."""
    left, right, made = given(op, "A"), given(op, "B"), result(op)
    scales = given(op, "b_scale").size
    after = work(made, mul=made.size + scales, add=made.size if has(op, "bias") else 0)
    return matmul(left, left.shape, right.shape) + after


@formula("com.microsoft::DynamicQuantizeMatMul")
def quantized_while_running(op: Op) -> Work:
    """A is made integers of 8 bits first (see DynamicQuantizeLinear), then as with MatMulIntegerToFloat."""
    from flopwatch.flops.formulas.onnx.quantized import made_integers

    left, right, made = given(op, "A"), given(op, "B"), result(op)
    scales = given(op, "b_scale").size
    integers = Array(left.shape, right.dtype)
    after = work(made, mul=made.size + scales, add=made.size if has(op, "bias") else 0)
    return made_integers(left) + matmul(integers, left.shape, right.shape) + after


@formula("com.microsoft::QGemm")
def quantized_general(op: Op) -> Work:
    """Integers A·B + C as OP; the sums times the scales, and by the scale of the result where that is asked for."""
    left, right, made = given(op, "A"), given(op, "B"), result(op)
    rows, inner = _turned(left.shape, op.arguments.get("transA"))
    columns = _turned(right.shape, op.arguments.get("transB"))[1]
    scales = given(op, "b_scale").size
    quotients = scales if has(op, "y_scale") else 0
    after = work(given(op, "a_scale"), mul=made.size + scales, div=quotients)
    return product(left, rows, inner, columns) + after


@formula("com.microsoft::CDist")
def distances_between(op: Op) -> Work | Unknown:
    """Distances of all rows of A to all rows of B."""
    left, right = given(op, "A"), given(op, "B")
    metric = op.arguments.get("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        return Unknown(f"{op.name} of metric {metric}")
    pairs = left.shape[0] * right.shape[0]
    found = distances(left, pairs, left.shape[1], 2)
    if metric == "euclidean" or not left.shape[1]:
        return found
    each = pairs * left.shape[1]
    return work(left, add=2 * each - pairs, mul=each)


@formula("com.microsoft::MoE")
def mixture(op: Op) -> Work | Unknown:
    """Each row goes through k experts: fc2(activation(fc1)·fc3), where there is an fc3, weighed by a softmax of the router's scores.

    Which experts a row goes to is written in data, how many are not. Their results, times their weights, are added up. Which of
    the scores are taken is comparison. Gated activations in one weight matrix ("swiglu") are not counted yet.
    """
    data, scores, made = given(op, "input"), given(op, "router_probs"), result(op)
    kind = op.arguments.get("activation_type") or "relu"
    if kind not in ("relu", "gelu", "silu", "identity"):
        return Unknown(f"{op.name} with {kind}")
    width = data.shape[-1]
    pairs = (data.size // width if width else 0) * (op.arguments.get("k") or 1)
    first, second = given(op, "fc1_experts_weights"), given(op, "fc2_experts_weights")
    third = op.arguments.get("fc3_experts_weights")
    inner = first.shape[1]
    weights = (
        prod(first.shape[1:]) + prod(second.shape[1:]) + (prod(third.shape[1:]) if isinstance(third, Array) else 0)
    )
    biases = sum(
        size
        for name, size in (("fc1_experts_bias", inner), ("fc2_experts_bias", width), ("fc3_experts_bias", inner))
        if has(op, name)
    )
    after = activation(kind, Array((pairs, inner), data.dtype))
    if isinstance(after, Unknown):
        return after
    rows = scores.size // scores.shape[-1] if scores.size else 0
    routed = softmax(scores, scores.size, rows)
    if op.arguments.get("normalize_routing_weights"):
        routed += work(scores, add=pairs - rows, div=pairs)
    gated = pairs * inner if isinstance(third, Array) else 0
    joined = work(data, mul=gated + pairs * width, add=pairs * (biases + width) - made.size)
    return work(data, mac=pairs * weights) + after + routed + joined
