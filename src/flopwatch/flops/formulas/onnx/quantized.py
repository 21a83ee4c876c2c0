"""Numbers made integers of few bits and back, and what is computed on such integers beside products."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import quantisation
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.onnx.arguments import given, has, lines, result
from flopwatch.flops.formulas.onnx.pooling import average
from flopwatch.flops.formulas.reductions import softmax
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


@formula("onnx::QuantizeLinear", "com.microsoft::QuantizeLinear")
def quantize(op: Op) -> Work:
    """round(x/y_scale) + y_zero_point: the sum is one of integers."""
    array, scale = given(op, "x"), given(op, "y_scale")
    return quantisation.quantised(numbers_of(array), array.size, scale.size)


@formula("onnx::DequantizeLinear", "com.microsoft::DequantizeLinear")
def dequantize(op: Op) -> Work:
    """(x - x_zero_point)·x_scale: the difference is one of integers."""
    array = result(op)
    return quantisation.dequantised(numbers_of(array), array.size)


def made_integers(array: Array) -> Work:
    """A tensor made integers of 8 bits with a scale of its own: least and largest number, scale and zero point, x/scale."""
    numbers = numbers_of(array)
    return quantisation.parameters(numbers, array.size) + quantisation.quantised(numbers, array.size)


@formula("onnx::DynamicQuantizeLinear")
def dynamic(op: Op) -> Work:
    """See `made_integers`."""
    return made_integers(given(op, "x"))


def _there_and_back(inputs: int, scale: Array, outputs: int, scales: int = 1) -> Work:
    """Integers made numbers, and a result made integers again: how functions of quantized numbers are defined."""
    numbers = numbers_of(scale)
    return quantisation.dequantised(numbers, inputs) + quantisation.quantised(numbers, outputs, scales)


@formula("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def elements(op: Op) -> Work:
    """A sum or product of numbers that are integers before and after."""
    left, right, made, scale = given(op, "A"), given(op, "B"), result(op), given(op, "A_scale")
    between = Array(made.shape, scale.dtype)
    name = "add" if op.name.endswith("Add") else "mul"
    return _there_and_back(left.size + right.size, scale, made.size) + elementwise(name, between, made.size)


@formula("com.microsoft::QLinearLeakyRelu", "com.microsoft::QLinearSigmoid")
def activations(op: Op) -> Work:
    """A function of numbers that are integers before and after."""
    array, scale = given(op, "X"), given(op, "X_scale")
    name = "leaky_relu" if op.name.endswith("Relu") else "sigmoid"
    return _there_and_back(array.size, scale, array.size) + elementwise(name, scale, array.size)


@formula("com.microsoft::QLinearSoftmax")
def quantized_softmax(op: Op) -> Work | Unknown:
    """Softmax of numbers that are integers before and after."""
    array, scale = given(op, "X"), given(op, "X_scale")
    if (op.arguments.get("opset") or 13) < 13:
        return Unknown(f"{op.name} as before opset 13")
    rows = lines(array, op.arguments.get("axis", -1))
    return _there_and_back(array.size, scale, array.size) + softmax(scale, array.size, rows)


@formula("com.microsoft::QLinearGlobalAveragePool", "com.microsoft::QLinearReduceMean")
def quantized_mean(op: Op) -> Work:
    """Sums of integers, divided, and made integers of another scale: the sums are free, a product scales each of them."""
    made = result(op)
    scale = given(op, "x_scale", "data_scale")
    return work(scale, mul=made.size + 1, div=made.size + 1)


@formula("com.microsoft::QLinearAveragePool")
def quantized_pool(op: Op) -> Work | Unknown:
    """As the mean, in windows."""
    if op.arguments.get("channels_last"):
        return Unknown(f"{op.name} with the channels last")
    array, made, scale = given(op, "X"), result(op), given(op, "x_scale")
    real = Op(
        "onnx::AveragePool", {**op.arguments, "X": Array(array.shape, scale.dtype)}, (Array(made.shape, scale.dtype),)
    )
    return _there_and_back(array.size, scale, made.size) + average(real)


@formula("com.microsoft::MulInteger", "com.microsoft::ReduceSumInteger")
def integers(op: Op) -> Work:
    """Products and sums of integers one by one are free."""
    return Work()


@formula("com.microsoft::QLinearConcat", "com.microsoft::QLinearWhere")
def rearranged(op: Op) -> Work:
    """Integers of different scales brought to one."""
    made = result(op)
    scale = given(op, "Y_scale", "z_scale")
    return _there_and_back(made.size, scale, made.size)


@formula("com.microsoft::GatherBlockQuantized")
def looked_up(op: Op) -> Work:
    """Rows of packed weights, made numbers: a product with the scale of its block, a difference where there is a zero point."""
    made = result(op)
    return work(made, mul=made.size, add=made.size if has(op, "zero_points") else 0)
