"""Functions of Chainer that treat each number by itself, and sums and products of arrays."""

from __future__ import annotations

from flopwatch.events import Op
from flopwatch.flops.formulas import activations, losses
from flopwatch.flops.formulas.chainer.reading import first, inputs_of, numbers, result, setting
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.reductions import summed
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work

# Names in the table of functions of single numbers, each with the functions that compute one for each element of their result.
_TABLE = {
    "add": "AddConstant",
    "sub": "Sub SubFromConstant",
    "mul": "Mul MulConstant Square",
    "div": "Div DivFromConstant",
    "remainder": "Fmod",
    "sqrt": "Sqrt",
    "rsqrt": "RsqrtGPU",
    "maximum": "CReLU Maximum Minimum ReLU",
    "clip": "ClippedReLU Clip",
    "transcendental": "Arccos Arcsin Arctan Arctan2 Arctanh Cos Cosh DiGamma Erf Erfc ErfcInv Erfcx ErfInv Exp Expm1 LGamma Log"
    " Log10 Log1p Log2 Ndtri PolyGamma PowConstVar PowVarVar Sin Sinh Tan Tanh Zeta",
    "ndtr": "Ndtr",
    "leaky_relu": "LeakyReLU _LeakyReLUGrad PReLUFunction RReLU _RReLUGrad",
    "tanh_backward": "TanhGrad",
    "sigmoid": "Sigmoid",
    "sigmoid_backward": "SigmoidGrad",
    "hardsigmoid": "HardSigmoid",
    "hardsigmoid_backward": "HardSigmoidGrad",
    "mse": "SquaredError",
    "l1": "AbsoluteError",
}


@formula(*(f"chainer::{name}" for names in _TABLE.values() for name in names.split()))
def _from_table(op: Op) -> Work:
    """As the table of functions of single numbers says, for each element of the result."""
    return elementwise(_ROWS[op.name], numbers(op), result(op).size)


_ROWS = {f"chainer::{name}": row for row, names in _TABLE.items() for name in names.split()}


@formula("chainer::Add", "chainer::MultiAdd")
def _add(op: Op) -> Work:
    """n - 1 additions for n arrays."""
    return work(numbers(op), add=(len(inputs_of(op)) - 1) * result(op).size)


@formula("chainer::PowVarConst")
def _power(op: Op) -> Work:
    """Squares and roots are products and roots, other powers function values."""
    return activations.power(numbers(op), result(op).size, setting(op, "value"))


@formula("chainer::DivGrad")
def _div_grad(op: Op) -> Work:
    """g / y for x, and minus that times x / y for y."""
    size = inputs_of(op)[2].size
    return work(numbers(op), div=2 * size, mul=size)


@formula("chainer::DivFromConstantGrad")
def _div_from_constant_grad(op: Op) -> Work:
    """-c · g / x²."""
    return work(numbers(op), mul=2 * result(op).size, div=result(op).size)


@formula("chainer::SinGrad", "chainer::CosGrad")
def _sine_grad(op: Op) -> Work:
    """cos(x) · g, or -sin(x) · g."""
    return work(numbers(op), transcendental=result(op).size, mul=result(op).size)


@formula("chainer::ArcsinGrad", "chainer::ArccosGrad")
def _arcsine_grad(op: Op) -> Work:
    """±g / √(1 - x²)."""
    size = result(op).size
    return work(numbers(op), mul=size, add=size, sqrt=size, div=size)


@formula("chainer::ArctanGrad")
def _arctangent_grad(op: Op) -> Work:
    """g / (1 + x²)."""
    return work(numbers(op), mul=result(op).size, add=result(op).size, div=result(op).size)


@formula("chainer::Arctan2Grad")
def _arctangent2_grad(op: Op) -> Work:
    """y · g / (x² + y²) and -x · g / (x² + y²)."""
    size = first(op).size
    return work(numbers(op), mul=3 * size, fma=size, div=2 * size)


@formula("chainer::ELU")
def _elu(op: Op) -> Work:
    return activations.elu(numbers(op), result(op).size, alpha=setting(op, "alpha", 1.0))


@formula("chainer::ELUGrad")
def _elu_grad(op: Op) -> Work:
    return activations.elu_backward(numbers(op), result(op).size, from_result=True)


@formula("chainer::Softplus")
def _softplus(op: Op) -> Work:
    return activations.softplus(numbers(op), result(op).size, beta=setting(op, "beta", 1.0))


@formula("chainer::SoftplusGrad")
def _softplus_grad(op: Op) -> Work:
    return activations.softplus_backward(numbers(op), result(op).size, beta=setting(op, "beta", 1.0))


@formula("chainer::PReLUFunctionGrad")
def _prelu_grad(op: Op) -> Work:
    """The gradients of input and slope, the latter summed over everything that shares one."""
    size, slopes = first(op).size, inputs_of(op)[1].size
    return elementwise("prelu_backward", numbers(op), size) + summed(numbers(op), size, slopes)


@formula("chainer::Dropout")
def _dropout(op: Op) -> Work:
    """In training alone is it called: the mask is scaled, and a product."""
    return activations.dropout(numbers(op), result(op).size)


@formula("chainer::DropoutGrad", "chainer::DropoutGradCuDNN")
def _dropout_grad(op: Op) -> Work:
    return activations.dropout_backward(numbers(op), result(op).size)


@formula("chainer::LinearInterpolate")
def _interpolate(op: Op) -> Work:
    """p · x + (1 - p) · y."""
    size = result(op).size
    return work(numbers(op), add=size, mul=size, fma=size)


@formula("chainer::LinearInterpolateGrad")
def _interpolate_grad(op: Op) -> Work:
    """g · p and g - g · p for x and y, g · (x - y) for p."""
    size = first(op).size
    return work(numbers(op), mul=2 * size, add=2 * size)


@formula("chainer::LSTM")
def _lstm(op: Op) -> Work:
    """The cell from gates that are summed already: σ of three, tanh of the fourth; c = f · c + i · g; h = o · tanh(c)."""
    cells = result(op).size
    return work(numbers(op), add=(3 + 1) * cells, mul=3 * cells, div=3 * cells, transcendental=(3 + 2) * cells)


@formula("chainer::LSTMGrad")
def _lstm_grad(op: Op) -> Work:
    """The gates are made again; then, with gradients g of c and h of h, t = h · o · (1 - tanh² c) + g and its share of each gate.

    A share is a product with the other factor and one with o · (1 - o) or 1 - a²: three products and a difference; that of f's
    other factor is one product. A gradient that is not there takes nothing.
    """
    cells, (of_state, of_output) = first(op).size, inputs_of(op)[3:5]
    given, gates = of_output is not None, 4 if of_output is not None else 3
    again = work(numbers(op), add=3 * cells, div=3 * cells, transcendental=(4 + given) * cells)
    shares = work(numbers(op), mul=(3 * gates + 1) * cells, add=gates * cells)
    through = work(numbers(op), mul=3 * cells, add=cells) if given else Work()
    both = work(numbers(op), add=cells) if given and of_state is not None else Work()
    return again + shares + through + both


@formula("chainer::Swish")
def _swish(op: Op) -> Work:
    """x · σ(b · x)."""
    size = result(op).size
    return elementwise("sigmoid", numbers(op), size) + work(numbers(op), mul=2 * size)


@formula("chainer::SwishGrad")
def _swish_grad(op: Op) -> Work:
    """With s = σ(b · x), y = x · s: g · (b · y + s · (1 - b · y)) for x, and Σ g · y · (x - y) for each b."""
    size, factors = first(op).size, inputs_of(op)[1].size
    made = elementwise("sigmoid", numbers(op), size) + summed(numbers(op), size, factors)
    return made + work(numbers(op), mul=(3 + 1 + 2) * size, fma=size, add=2 * size)


@formula("chainer::PowVarConstGrad")
def _power_grad(op: Op) -> Work:
    """c · x^(c - 1) · g."""
    value = setting(op, "value")
    power = activations.power(numbers(op), result(op).size, None if value is None else value - 1)
    return power + work(numbers(op), mul=2 * result(op).size)


@formula("chainer::PowConstVarGrad")
def _exponential_grad(op: Op) -> Work:
    """log c · y · g; the logarithm is a constant."""
    return work(numbers(op), mul=2 * result(op).size)


@formula("chainer::PowVarVarGrad")
def _both_powers_grad(op: Op) -> Work:
    """e · x^(e - 1) · g for x, and log x · y · g for e."""
    size = result(op).size
    return work(numbers(op), transcendental=2 * size, add=size, mul=4 * size)


@formula("chainer::Gaussian")
def _gaussian(op: Op) -> Work:
    """mean + exp(ln σ² / 2) · noise, where drawing the noise is free."""
    size = result(op).size
    return work(numbers(op), mul=size, transcendental=size, fma=size)


@formula("chainer::HuberLoss")
def _huber(op: Op) -> Work:
    """Of each number; the sum over a row follows where it is asked for."""
    size = first(op).size
    return losses.pointwise("huber", numbers(op), size, losses.Reduction.NONE) + summed(
        numbers(op), size, result(op).size
    )


@formula("chainer::MeanSquaredError")
def _mean_squared(op: Op) -> Work:
    return losses.pointwise("mse", numbers(op), first(op).size, losses.Reduction.MEAN)


@formula("chainer::MeanAbsoluteError")
def _mean_absolute(op: Op) -> Work:
    return losses.pointwise("l1", numbers(op), first(op).size, losses.Reduction.MEAN)


@formula("chainer::SigmoidCrossEntropy")
def _sigmoid_cross_entropy(op: Op) -> Work:
    reduced = losses.Reduction.MEAN if setting(op, "reduce", "mean") == "mean" else losses.Reduction.NONE
    return losses.binary_cross_entropy_with_logits(numbers(op), first(op).size, reduced)


@formula("chainer::SigmoidCrossEntropyGrad")
def _sigmoid_cross_entropy_grad(op: Op) -> Work:
    """g · (σ(x) - t), times the share of a sample in the mean."""
    size = result(op).size
    return elementwise("sigmoid", numbers(op), size) + work(numbers(op), add=size, mul=size, div=size)


@formula("chainer::SGDRule")
def _descend(op: Op) -> Work:
    """w - rate · g."""
    return work(numbers(op), fma=result(op).size)
