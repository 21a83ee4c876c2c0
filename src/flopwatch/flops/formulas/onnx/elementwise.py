"""Functions of single numbers. What is computed on is the datatype of the result; broadcasting is in its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import activations
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.onnx.arguments import given, has, result, value
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work

# By the name of the row in flops/tables/ops/elementwise.toml.
_TABLE: Mapping[str, str] = {
    "add": "Add Sub",
    "mul": "Mul",
    "div": "Div Reciprocal",
    "sqrt": "Sqrt",
    "transcendental": "Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Tanh Erf",
    "maximum": "Relu",
    "leaky_relu": "LeakyRelu PRelu",
    "sigmoid": "Sigmoid",
    "selu": "Selu",
    "softplus": "Softplus",
    "mish": "Mish",
    "remainder": "Mod",
}
_LARGEST = 3.4028234663852886e38


def _bind(row: str, names: str) -> None:
    @formula(*(f"onnx::{name}" for name in names.split()))
    def of_table(op: Op) -> Work:
        array = result(op)
        return elementwise(row, array, array.size)


for _row, _names in _TABLE.items():
    _bind(_row, _names)


@formula("onnx::Max", "onnx::Min")
def extreme(op: Op) -> Work:
    """The greatest of n tensors: n - 1 minmax for each element of the result."""
    array = result(op)
    return work(array, minmax=(len(op.arguments["data_0"]) - 1) * array.size)


@formula("onnx::Sum", "onnx::Mean")
def summed(op: Op) -> Work:
    """The sum of n tensors: n - 1 additions for each element; a division for the mean."""
    array = result(op)
    divided = array.size if op.name.endswith("Mean") else 0
    return work(array, add=(len(op.arguments["data_0"]) - 1) * array.size, div=divided)


@formula("onnx::Pow")
def power(op: Op) -> Work:
    """X to a power: a constant one may be few products, else each is a function value."""
    array = result(op)
    exponent = value(op, "Y")
    constant = exponent[0] if exponent is not None and len(exponent) == 1 else None
    return activations.power(array, array.size, constant)


@formula("onnx::Clip")
def clip(op: Op) -> Work:
    """A minmax for each bound that is given; the greatest float is none."""
    array = result(op)
    low, high = op.arguments.get("min"), op.arguments.get("max")
    bounds = (low is not None and low != -_LARGEST) + (high is not None and high != _LARGEST)
    return work(array, minmax=bounds * array.size)


@formula("onnx::HardSigmoid")
def hard_sigmoid(op: Op) -> Work:
    """max(0, min(1, alpha·x + beta))."""
    array = result(op)
    return work(array, fma=array.size, minmax=2 * array.size)


@formula("onnx::HardSwish")
def hard_swish(op: Op) -> Work:
    """x·max(0, min(1, x/6 + 1/2))."""
    array = result(op)
    return work(array, fma=array.size, minmax=2 * array.size, mul=array.size)


@formula("onnx::Elu")
def elu(op: Op) -> Work:
    """alpha·(exp(x) - 1) below zero."""
    array = result(op)
    return activations.elu(array, array.size, alpha=op.arguments.get("alpha", 1.0))


@formula("onnx::Celu")
def celu(op: Op) -> Work:
    """alpha·(exp(x/alpha) - 1) below zero."""
    array, alpha = result(op), op.arguments.get("alpha", 1.0)
    return activations.elu(array, array.size, alpha=alpha, input_scale=1 / alpha if alpha else 0)


@formula("onnx::Softsign")
def softsign(op: Op) -> Work:
    """x/(1 + |x|)."""
    array = result(op)
    return work(array, add=array.size, div=array.size)


@formula("onnx::Gelu")
def gelu(op: Op) -> Work:
    """x·Φ(x), by erf or by tanh."""
    array = result(op)
    return activations.gelu(array, array.size, tanh=op.arguments.get("approximate") == "tanh")


def swish(array: Array, alpha: float = 1.0) -> Work:
    """x·σ(alpha·x): a product more with another alpha than 1."""
    return elementwise("silu", array, array.size) + work(array, mul=0 if alpha == 1 else array.size)


@formula("onnx::Swish")
def swished(op: Op) -> Work:
    """x·σ(alpha·x)."""
    return swish(result(op), op.arguments.get("alpha", 1.0))


@formula("onnx::SwiGLU")
def gated(op: Op) -> Work:
    """a·σ(alpha·a)·b (arXiv:2002.05202)."""
    array = result(op)
    return swish(array, op.arguments.get("alpha", 1.0)) + work(array, mul=array.size)


@formula("onnx::Shrink")
def shrink(op: Op) -> Work:
    """x moved towards zero by `bias`, zero in between; both sides are computed, as with other choices by element."""
    array = result(op)
    return elementwise("softshrink", array, array.size) if op.arguments.get("bias") else Work()


@formula("onnx::Dropout", "com.microsoft::BitmaskDropout")
def dropout(op: Op) -> Work | Free:
    """Only in training; a flag that is not known before the model runs is taken for False, as files for inference have it."""
    array, version = result(op), op.arguments.get("since_version", 1)
    if op.name.startswith("onnx::") and version < 7:
        training = not op.arguments.get("is_test")
    else:
        flag = value(op, "training_mode")
        training = bool(flag and flag[0])
    if training:
        return activations.dropout(array, array.size)
    return Free("identity outside of training", moves=False)


@formula("com.microsoft::BiasDropout", "com.microsoft::BitmaskBiasDropout")
def bias_dropout(op: Op) -> Work:
    """dropout(data + bias) + residual."""
    array = result(op)
    flag = value(op, "training_mode")
    dropped = activations.dropout(array, array.size) if flag and flag[0] else Work()
    return dropped + work(array, add=array.size * (1 + has(op, "residual")))


@formula("com.microsoft::Gelu")
def exact_gelu(op: Op) -> Work:
    """x·Φ(x) by erf."""
    array = result(op)
    return activations.gelu(array, array.size)


@formula("com.microsoft::BiasGelu")
def bias_gelu(op: Op) -> Work:
    """The same of A + B."""
    array = result(op)
    return activations.gelu(array, array.size) + work(array, add=array.size)


@formula("com.microsoft::FastGelu")
def fast_gelu(op: Op) -> Work:
    """x·Φ(x) by tanh, of X + bias."""
    array = result(op)
    return activations.gelu(array, array.size, tanh=True) + work(array, add=array.size if has(op, "bias") else 0)


@formula("com.microsoft::BiasSplitGelu")
def split_gelu(op: Op) -> Work:
    """X + bias in two halves: the first times the GELU of the second."""
    array, whole = result(op), given(op, "X")
    return activations.gelu(array, array.size) + work(array, add=whole.size, mul=array.size)


@formula("com.microsoft::QuickGelu")
def quick_gelu(op: Op) -> Work:
    """x·σ(alpha·x)."""
    return swish(result(op), op.arguments.get("alpha", 1.702))


@formula("com.microsoft::BiasAdd")
def bias_add(op: Op) -> Work:
    """X + bias + skip."""
    array = result(op)
    return work(array, add=2 * array.size)


@formula("com.microsoft::ComplexMul", "com.microsoft::ComplexMulConj")
def complex_product(op: Op) -> Work:
    """Products of complex numbers, whose parts lie side by side: 4 products and 2 sums each."""
    array = result(op)
    return work(array, mul=2 * array.size, add=array.size)


def activation(name: Any, array: Array, parameters: Sequence[float] | None = None) -> Work | Unknown:
    """A function by the name that fused operators and recurrent networks give; Unknown for one that nobody knows."""
    size = array.size
    kind = str(name or "none").lower()
    if kind in ("none", "identity", "thresholdedrelu"):
        return Work()
    if kind in _ACTIVATIONS:
        return elementwise(_ACTIVATIONS[kind], array, size)
    if kind == "hardsigmoid":
        return work(array, fma=size, minmax=2 * size)
    if kind == "hardswish":
        return work(array, fma=size, minmax=2 * size, mul=size)
    if kind == "affine":
        return work(array, fma=size)
    if kind == "scaledtanh":
        return work(array, mul=2 * size, transcendental=size)
    if kind == "softsign":
        return work(array, add=size, div=size)
    if kind == "quickgelu":
        return swish(array, parameters[0] if parameters else 1.702)
    return Unknown(f"activation {name}")


_ACTIVATIONS = {
    "relu": "maximum",
    "leakyrelu": "leaky_relu",
    "tanh": "transcendental",
    "sigmoid": "sigmoid",
    "clip": "clip",
    "elu": "elu",
    "selu": "selu",
    "softplus": "softplus",
    "swish": "silu",
    "silu": "silu",
    "mish": "mish",
    "gelu": "gelu",
    "fastgelu": "gelu_tanh",
}
