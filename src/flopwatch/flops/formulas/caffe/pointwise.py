"""Layers of Caffe that treat each number by itself, or with its counterparts in other blobs."""

from __future__ import annotations

from flopwatch.events import Op
from flopwatch.flops.formulas import activations
from flopwatch.flops.formulas.caffe.reading import bottom_of, made, numbers, setting
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


@formula("caffe::ReLU")
def _relu(op: Op) -> Work:
    """A maximum with zero; with a slope below zero a product."""
    if setting(op, "negative_slope"):
        return elementwise("leaky_relu", numbers(op), bottom_of(op).size)
    return elementwise("maximum", numbers(op), bottom_of(op).size)


@formula("caffe::ReLU6")
def _relu6(op: Op) -> Work:
    return activations.clamp(numbers(op), bottom_of(op).size, low=True, high=True)


@formula("caffe::PReLU")
def _prelu(op: Op) -> Work:
    return elementwise("leaky_relu", numbers(op), bottom_of(op).size)


@formula("caffe::ELU")
def _elu(op: Op) -> Work:
    return activations.elu(numbers(op), bottom_of(op).size, alpha=setting(op, "alpha"))


@formula("caffe::Sigmoid")
def _sigmoid(op: Op) -> Work:
    return elementwise("sigmoid", numbers(op), bottom_of(op).size)


@formula("caffe::TanH")
def _tanh(op: Op) -> Work:
    return elementwise("transcendental", numbers(op), bottom_of(op).size)


@formula("caffe::BNLL")
def _softplus(op: Op) -> Work:
    """log(1 + exp(x))."""
    return activations.softplus(numbers(op), bottom_of(op).size)


@formula("caffe::Power")
def _power(op: Op) -> Work:
    """(shift + scale · x)^power; a power of 0 is a constant."""
    power = setting(op, "power")
    if power == 0:
        return Work()
    return _shifted(op) + activations.power(numbers(op), bottom_of(op).size, power)


@formula("caffe::Exp")
def _exp(op: Op) -> Work:
    """base^(shift + scale · x)."""
    return _shifted(op) + work(numbers(op), transcendental=bottom_of(op).size)


@formula("caffe::Log")
def _log(op: Op) -> Work:
    """log(shift + scale · x), times a constant where the base is not e (written as -1)."""
    size = bottom_of(op).size
    return _shifted(op) + work(numbers(op), transcendental=size, mul=0 if setting(op, "base") == -1 else size)


def _shifted(op: Op) -> Work:
    """shift + scale · x, where either does something."""
    size, scaled, shifted = bottom_of(op).size, setting(op, "scale") != 1, setting(op, "shift") != 0
    return work(
        numbers(op),
        fma=size if scaled and shifted else 0,
        mul=size if scaled and not shifted else 0,
        add=size if shifted and not scaled else 0,
    )


@formula("caffe::Scale", "caffe::AffineChannel")
def _scale(op: Op) -> Work:
    """A product, with a bias a multiply-add; they are no MAC."""
    size = bottom_of(op).size
    return work(numbers(op), fma=size) if "bias" in op.arguments else work(numbers(op), mul=size)


@formula("caffe::Bias")
def _bias(op: Op) -> Work:
    return work(numbers(op), add=bottom_of(op).size)


@formula("caffe::Axpy")
def _axpy(op: Op) -> Work:
    """A factor for each channel, times one image, plus another."""
    return work(numbers(op), fma=made(op))


@formula("caffe::Eltwise")
def _eltwise(op: Op) -> Work:
    """n - 1 operations for each element of n blobs; factors other than 1 and -1 are a product each, with the sum if they can."""
    size, count = bottom_of(op).size, len(setting(op, "bottoms"))
    joined = (count - 1) * size
    operation = setting(op, "operation")
    if operation != "SUM":
        return work(numbers(op), mul=joined) if operation == "PROD" else work(numbers(op), minmax=joined)
    scaled = size * sum(factor not in (1, -1) for factor in setting(op, "coeff"))
    both = min(scaled, joined)
    return work(numbers(op), fma=both, mul=scaled - both, add=joined - both)
