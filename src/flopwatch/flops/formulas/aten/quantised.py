"""Quantised tensors: to integers and back, fake quantisation, and functions of quantised numbers.

A function of quantised numbers is worked out in single precision: each input by its scale, the function, each result by a scale.
What only compares integers (minima, limits) needs none of that. Products of matrices and convolutions are not here.
"""

from __future__ import annotations

from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate, formula, free, quantisation, work
from flopwatch.flops.formulas.accumulation import grouped
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.work import Numbers, numbers_of, total
from flopwatch.flops.operations import DType

SINGLE = Numbers(DType.FP32)
_BAGS = ("byte", "4bit", "byte_rowwise_offsets", "4bit_rowwise_offsets", "2bit_rowwise_offsets")

free(
    "compares integers",
    "quantized::clamp",
    "quantized::relu6",
    "quantized::threshold",
    "quantized::max_pool1d",
    "quantized::max_pool2d",
)
free(
    "changes the scale, not the numbers",
    "quantized::mul_scalar",
    "quantized::mul_scalar_out",
    "quantized::mul_scalar_relu",
    "quantized::mul_scalar_relu_out",
)


@formula("aten::quantize_per_tensor", "aten::quantize_per_channel")
def quantise(op: Op) -> Work:
    """Numbers to integers, with one scale or one for each channel; or several tensors, each with a scale."""
    if "tensors" in op.arguments:
        return total(quantisation.quantised(numbers_of(each), each.size) for each in op.arguments["tensors"])
    given: Array = op.arguments["self"]
    scales = op.arguments.get("scales")
    return quantisation.quantised(numbers_of(given), given.size, scales.size if isinstance(scales, Array) else 1)


@formula("aten::quantize_per_tensor_dynamic")
def quantise_dynamically(op: Op) -> Work:
    """Scale and zero point from the least and largest, then as with given ones."""
    given: Array = op.arguments["self"]
    numbers = numbers_of(given)
    return quantisation.parameters(numbers, given.size) + quantisation.quantised(numbers, given.size)


@formula("aten::dequantize")
def dequantise(op: Op) -> Work | Free:
    """Integers to numbers; numbers of half precision are only cast."""
    arrays = op.arguments.get("tensors", op.arguments.get("self", op.arguments.get("qtensor")))
    arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    if any(numbers_of(each).dtype.floating for each in arrays):
        return Free("casts only")
    return quantisation.dequantised(SINGLE, sum(each.size for each in arrays))


@formula(
    "aten::fake_quantize_per_tensor_affine",
    "aten::fake_quantize_per_tensor_affine_cachemask",
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "aten::fake_quantize_per_channel_affine",
    "aten::fake_quantize_per_channel_affine_cachemask",
    "aten::_fake_quantize_learnable_per_tensor_affine",
    "aten::_fake_quantize_learnable_per_channel_affine",
)
def fake_quantise(op: Op) -> Work:
    """Rounded to what integers can hold, with one scale or one for each channel."""
    given: Array = op.arguments["self"]
    return quantisation.fake_quantised(numbers_of(given), given.size, _scales(op))


@formula(
    "aten::_fake_quantize_learnable_per_tensor_affine_backward",
    "aten::_fake_quantize_learnable_per_channel_affine_backward",
)
def fake_quantise_backward(op: Op) -> Work:
    """Gradients where scale and zero point are learnt."""
    given: Array = op.arguments["self"]
    return quantisation.fake_quantised_backward(numbers_of(given), given.size, _scales(op))


@formula(
    "aten::_fused_moving_avg_obs_fq_helper",
    "aten::_fused_moving_avg_obs_fq_helper_functional",
    "aten::fused_moving_avg_obs_fake_quant",
)
def observe_and_fake_quantise(op: Op) -> Work:
    """Moving least and largest, scale and zero point from them, and fake quantisation; as if both were switched on."""
    given: Array = op.arguments["self"]
    channels = given.shape[op.arguments["ch_axis"]] if op.arguments.get("per_row_fake_quant") else 1
    numbers = numbers_of(given)
    observed = quantisation.parameters(numbers, given.size, channels, moving=True)
    return observed + quantisation.fake_quantised(numbers, given.size, channels)


# Functions of quantised numbers, by the operator for others that does the same.
_FUNCTIONS = {
    "quantized::add": "aten::add",
    "quantized::add_relu": "aten::add",
    "quantized::mul": "aten::mul",
    "quantized::mul_relu": "aten::mul",
    "quantized::sigmoid": "aten::sigmoid",
    "quantized::hardswish": "aten::hardswish",
    "quantized::elu": "aten::elu",
    "quantized::celu": "aten::celu",
    "quantized::leaky_relu": "aten::leaky_relu",
    "quantized::prelu": "aten::_prelu_kernel",
    "quantized::softmax": "aten::_softmax",
    "quantized::layer_norm": "aten::native_layer_norm",
    "quantized::instance_norm": "aten::instance_norm",
    "quantized::group_norm": "aten::group_norm",
    "_quantized::add": "aten::add",
    "onednn::qadd": "aten::add",
    "onednn::qadd_relu": "aten::add",
    "onednn::qmul": "aten::mul",
}
# What the other operator calls an argument.
_NAMES = {"qa": "self", "qb": "other", "qx": "self", "b": "other"}


@formula(*_FUNCTIONS, "quantized::add_out", "quantized::add_relu_out", "quantized::mul_out", "quantized::mul_relu_out")
def function(op: Op) -> Work | Free | Unknown:
    """A function of quantised numbers by that of real ones; a relu behind it limits integers."""
    made = result_of(op)
    arguments: dict[str, Any] = {"alpha": 1, "use_input_stats": True}
    inputs = 0
    other = _FUNCTIONS[op.name.removesuffix("_out")]
    for name, value in op.arguments.items():
        if isinstance(value, Array) and name != "out":
            quantised = not numbers_of(value).dtype.floating
            inputs += value.size if quantised else 0
            value = Array(value.shape, "float32") if quantised else value
        known = name if other in ("aten::native_layer_norm", "aten::group_norm", "aten::instance_norm") else ""
        arguments[known or _NAMES.get(name, name)] = value
    found = estimate(Op(other, arguments, (Array(made.shape, "float32"),)))
    if not isinstance(found, Work):
        return Unknown(op.name)
    return quantisation.dequantised(SINGLE, inputs) + found + quantisation.quantised(SINGLE, made.size, 0)


@formula(
    "aten::quantized_batch_norm",
    *(f"quantized::batch_norm{kind}" for kind in ("", "1d", "2d", "3d", "_relu", "1d_relu", "2d_relu", "3d_relu")),
    "onednn::qbatch_norm2d",
)
def batch_norm(op: Op) -> Work:
    """Channels by scale and shift, which are folded: for each weight / √(var + ε), and shift - mean times that, once."""
    made = result_of(op)
    channels = op.arguments["mean"].size
    affine = op.arguments.get("weight") is not None
    folded = work(SINGLE, add=channels, sqrt=channels, div=channels, mul=affine * channels, fma=channels)
    rescaled = quantisation.dequantised(SINGLE, made.size) + quantisation.quantised(SINGLE, made.size, 0)
    return folded + rescaled + work(SINGLE, fma=made.size)


@formula("quantized::embedding_byte", "quantized::embedding_4bit")
def embedding(op: Op) -> Work:
    """Rows of integers to numbers, each row with a scale and an offset: one multiply-add each."""
    return work(SINGLE, fma=result_of(op).size)


@formula(*(f"quantized::embedding_bag_{kind}" for kind in _BAGS))
def embedding_bag(op: Op) -> Work:
    """Rows of integers to numbers, each row with a scale and an offset, and added up in each bag; dense, see `accumulation`."""
    given, made = op.arguments, result_of(op)
    bags, inner = made.shape
    rows = given["indices"].size
    weighted = given.get("per_sample_weights") is not None
    how = "mean" if given.get("mode") == 1 else "sum"
    return work(SINGLE, fma=rows * inner) + grouped(SINGLE, rows, bags, inner, how, weighted)


@formula("quantized::dropout")
def dropout(op: Op) -> Free | Unknown:
    """Nothing, outside of training; in training there is no such thing."""
    return Unknown(op.name) if op.arguments.get("training") else Free("copies data only")


@formula("quantized::cat", "quantized::cat_relu", "quantized::cat_out", "quantized::cat_relu_out")
def cat(op: Op) -> Work:
    """All numbers by their own scale, and by that of the result; as if the scales differed."""
    elements = sum(each.size for each in op.arguments["qx"])
    return quantisation.dequantised(SINGLE, elements) + quantisation.quantised(SINGLE, elements, 0)


def _scales(op: Op) -> int:
    scale = op.arguments.get("scale")
    return scale.size if isinstance(scale, Array) else 1
