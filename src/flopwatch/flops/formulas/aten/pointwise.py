"""Functions of single numbers: those of the table, and those whose arguments matter.

What is computed on is the datatype of the result, to which PyTorch promotes all inputs; broadcasting is in its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import activations
from flopwatch.flops.formulas.elementwise import Function, each, elementwise, functions
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Numbers, Work, numbers_of, work


def result(op: Op) -> Array:
    """The first tensor that comes out; ValueError if there is none."""
    for array in op.outputs:
        if array is not None:
            return array
    raise ValueError(f"{op.name} gives no tensor")


def broadcast(*arrays: Array) -> int:
    """Elements of the shape that several are broadcast to."""
    dims = max(len(array.shape) for array in arrays)
    shapes = [(1,) * (dims - len(array.shape)) + array.shape for array in arrays]
    return prod(next((size for size in sizes if size != 1), 1) for sizes in zip(*shapes, strict=True))


def of_table(function: Function) -> Callable[[Op], Work]:
    """The formula of operators that compute a function of the table for each element of their first result."""

    def formula_of(op: Op) -> Work:
        array = result(op)
        return each(function, array, array.size)

    return formula_of


for _row in functions().values():
    formula(*(f"aten::{name}" for name in _row.aten.split()))(of_table(_row))


@formula("aten::add", "aten::sub", "aten::subtract", "aten::rsub")
def add(op: Op) -> Work:
    """self ± alpha·other."""
    array = result(op)
    return activations.scaled_add(array, array.size, op.arguments.get("alpha", 1))


@formula("aten::_add_relu")
def add_relu(op: Op) -> Work:
    """max(self + alpha·other, 0)."""
    array = result(op)
    return add(op) + work(array, minmax=array.size)


@formula("aten::pow", "aten::float_power")
def power(op: Op) -> Work:
    """self to a power: cheap ones are few products; of a tensor of powers each is a function value."""
    array = result(op)
    exponent = op.arguments.get("exponent")
    return activations.power(array, array.size, None if isinstance(exponent, Array) else exponent)


@formula("aten::clamp", "aten::clip")
def clamp(op: Op) -> Work:
    """A minmax for each bound."""
    array = result(op)
    low, high = op.arguments.get("min"), op.arguments.get("max")
    return activations.clamp(array, array.size, low=low is not None, high=high is not None)


@formula("aten::addcmul")
def multiply_add(op: Op) -> Work:
    """self + value·tensor1·tensor2."""
    array = result(op)
    return activations.multiply_add(array, array.size, op.arguments.get("value", 1))


@formula("aten::addcdiv")
def divide_add(op: Op) -> Work:
    """self + value·tensor1/tensor2."""
    array = result(op)
    return activations.divide_add(array, array.size, op.arguments.get("value", 1))


@formula("aten::abs", "aten::absolute")
def absolute(op: Op) -> Work:
    """|self|: the result is real, what matters is what goes in."""
    return activations.absolute(numbers_of(op.arguments["self"]), result(op).size)


@formula("aten::angle")
def angle(op: Op) -> Work:
    """The phase of self."""
    return activations.angle(numbers_of(op.arguments["self"]), result(op).size)


@formula("aten::sgn", "aten::sign")
def phase(op: Op) -> Work:
    """self/|self|."""
    return activations.phase(numbers_of(op.arguments["self"]), result(op).size)


@formula("aten::polar")
def polar(op: Op) -> Work:
    """abs·(cos angle + i·sin angle), on the real numbers that go in."""
    return activations.polar(op.arguments["abs"], result(op).size)


@formula("aten::round", "aten::special_round")
def rounded(op: Op) -> Work:
    """Rounding, free for whole numbers."""
    array = result(op)
    return activations.rounded(array, array.size, op.arguments.get("decimals", 0))


@formula("aten::mvlgamma", "aten::special_multigammaln")
def multigamma_log(op: Op) -> Work:
    """The multivariate logarithm of the gamma function of order p."""
    array = result(op)
    return activations.multigamma_log(array, array.size, op.arguments["p"])


@formula("aten::gelu")
def gelu(op: Op) -> Work:
    """x·Φ(x), exact or with tanh."""
    array = result(op)
    return activations.gelu(array, array.size, tanh=op.arguments.get("approximate") == "tanh")


@formula("aten::gelu_backward")
def gelu_backward(op: Op) -> Work:
    """Its gradient."""
    array = result(op)
    return activations.gelu_backward(array, array.size, tanh=op.arguments.get("approximate") == "tanh")


@formula("aten::elu")
def elu(op: Op) -> Work:
    """ELU with two scales."""
    array, given = result(op), op.arguments
    return activations.elu(array, array.size, scale=given.get("scale", 1), input_scale=given.get("input_scale", 1))


@formula("aten::celu")
def celu(op: Op) -> Work:
    """ELU with the input divided by alpha."""
    array = result(op)
    return activations.elu(array, array.size, input_scale=1 / op.arguments.get("alpha", 1))


@formula("aten::elu_backward")
def elu_backward(op: Op) -> Work:
    """The gradient of ELU, SELU and CELU."""
    array, given = result(op), op.arguments
    return activations.elu_backward(
        array,
        array.size,
        scale=given["scale"],
        input_scale=given["input_scale"],
        from_result=given["is_result"],
    )


@formula("aten::softplus")
def softplus(op: Op) -> Work:
    """log(1 + exp(beta·x))/beta."""
    array = result(op)
    return activations.softplus(array, array.size, beta=op.arguments.get("beta", 1))


@formula("aten::softplus_backward")
def softplus_backward(op: Op) -> Work:
    """Its gradient."""
    array = result(op)
    return activations.softplus_backward(array, array.size, beta=op.arguments["beta"])


@formula("aten::logit", "aten::special_logit")
def logit(op: Op) -> Work:
    """log(x/(1 - x)), clamped if there is an eps."""
    array = result(op)
    return activations.logit(array, array.size, clamped=op.arguments.get("eps") is not None)


@formula("aten::glu_backward")
def glu_backward(op: Op) -> Work:
    """The gradients of both halves, for each element of the half."""
    gradient = op.arguments["grad_output"]
    return elementwise("glu_backward", gradient, gradient.size)


@formula("aten::glu_backward_jvp")
def glu_backward_jvp(op: Op) -> Work:
    """How these gradients change, for each element of the half."""
    gradient = op.arguments["grad_glu"]
    return elementwise("glu_backward_jvp", gradient, gradient.size)


@formula("aten::native_dropout", "aten::dropout", "aten::_fused_dropout")
def dropout(op: Op) -> Work:
    """A scaled mask, multiplied."""
    array = result(op)
    return _dropped(op, array.size)


@formula("aten::feature_dropout")
def feature_dropout(op: Op) -> Work:
    """One number of the mask for each channel of a sample."""
    return _dropped(op, prod(result(op).shape[:2]))


def _dropped(op: Op, mask: int) -> Work:
    """Nothing in evaluation or where nothing is dropped; where all is, the mask is zeros and needs no scale."""
    array, given = result(op), op.arguments
    if given.get("train", True) is False or given["p"] == 0:
        return Work()
    return activations.dropout(array, array.size, mask=0 if given["p"] == 1 else mask)


@formula("aten::native_dropout_backward")
def dropout_backward(op: Op) -> Work:
    """The gradient times the scaled mask."""
    array = result(op)
    return activations.dropout_backward(array, array.size)


@formula("aten::isclose", "aten::allclose")
def is_close(op: Op) -> Work:
    """|self - other| ≤ atol + |rtol·other|; the right side is made before it is broadcast."""
    one, other = op.arguments["self"], op.arguments["other"]
    if op.arguments.get("rtol", 1e-5) == op.arguments.get("atol", 1e-8) == 0:
        return Work()  # only equal numbers are
    elements, numbers = broadcast(one, other), numbers_of(one)
    made = work(numbers, add=elements, mul=other.size) + work(Numbers(numbers.dtype), add=other.size)
    return made + activations.absolute(numbers, elements) + activations.absolute(numbers, other.size)
