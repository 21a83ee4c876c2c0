"""Products of quantised matrices, and convolutions with quantised weights.

Packed parameters are no tensors: a call shows them as a list of what is in them. Those of a linear layer are [weight (outputs,
inputs), bias or None], those of a convolution [weight, bias or None, stride, padding, dilation], of which the last three may
be missing, where padding then stays untold. Calls that do not show them so are unknown.
"""

from __future__ import annotations

from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, free, numbers_of, work
from flopwatch.flops.formulas.aten.arguments import first_of, result_of
from flopwatch.flops.formulas.convolution import products, sizes_of
from flopwatch.flops.formulas.epilogue import binary, unary
from flopwatch.flops.formulas.low_precision import SINGLE, dynamic_product, integer_product
from flopwatch.flops.formulas.quantisation import dequantised, parameters, quantised

_PLACES = ("stride", "padding", "dilation")

free(
    "packs weights or tells how they are packed",
    *(
        f"{space}::{name}{end}"
        for space in ("quantized", "_quantized")
        for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear")
        for end in (
            "_prepack",
            "_unpack",
            "_stride",
            "_padding",
            "_output_padding",
            "_dilation",
            "_groups",
            "_transpose",
        )
    ),
    "quantized::conv_prepack",
    "quantized::conv_unpack",
    "quantized::conv2d_unpack_sizes",
    "quantized::linear_prepack_fp16",
    "quantized::linear_prepack_fp16_legacy",
    "quantized::linear_prepack_legacy",
    "quantized::linear_unpack_fp16",
    "_quantized::linear_prepack_fp16",
    "_quantized::linear_prepack_fp16_legacy",
    "_quantized::linear_prepack_legacy",
    "_quantized::_wrapped_linear_prepack",
    "_quantized::wrapped_fbgemm_pack_gemm_matrix_fp16",
    "quantized::make_quantized_cell_params",
    "quantized::make_quantized_cell_params_dynamic",
    "quantized::make_quantized_cell_params_fp16",
    "onednn::linear_prepack_fp16",
    "onednn::qconv_prepack",
    "onednn::qlinear_prepack",
    "mkl::_mkl_reorder_linear_weight",
    "mkldnn::_reorder_convolution_transpose_weight",
    "mkldnn::_reorder_convolution_weight",
    "mkldnn::_reorder_linear_weight",
    "mkldnn::_reorder_mkldnn_rnn_layer_weight",
    "mkldnn::_get_mkldnn_serialized_md",
    "mkldnn::_is_mkldnn_acl_supported",
    "mkldnn::_is_mkldnn_bf16_supported",
    "mkldnn::_is_mkldnn_fp16_supported",
    "mkldnn::_nbytes",
    "mkldnn::data_ptr",
    "mkldnn_prepacked::conv2d_prepack",
    "sparse::qlinear_prepack",
    "sparse::qlinear_unpack",
)


@formula(
    "quantized::linear",
    "quantized::linear_relu",
    "quantized::linear_leaky_relu",
    "quantized::linear_tanh",
    "_quantized::linear",
    "quantized::linear_dynamic",
    "quantized::linear_relu_dynamic",
    "_quantized::linear_dynamic",
    "quantized::linear_dynamic_fp16",
    "quantized::linear_relu_dynamic_fp16",
    "quantized::linear_with_input_q_dq_qweight_dq_output_fp32",
    "quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32",
)
def dense(op: Op) -> Work | Unknown:
    """Quantised inputs stay so, and a relu limits integers; real ones are quantised, or multiplied by weights of half precision."""
    given = op.arguments
    packed = _packed(given["W_prepack"])
    if packed is None:
        return Unknown(op.name)
    inputs: Array = given["X"]
    weight: Array = packed[0]
    outputs = prod(inputs.shape[:-1]) * weight.shape[0]
    mac = outputs * inputs.shape[-1]
    bias = packed[1] is not None
    relu = work(SINGLE, minmax=outputs) if "_relu" in op.name and "leaky" not in op.name else Work()
    if op.name.endswith("_fp16"):
        return work(inputs, mac=mac, add=outputs if bias else 0) + relu
    if op.name.endswith("_dynamic"):
        return dynamic_product(inputs.size, mac, outputs, bias=bias) + relu
    if op.name.endswith("_fp32"):
        made = quantised(SINGLE, inputs.size) + integer_product(mac, outputs)
        return made + work(SINGLE, add=outputs if bias else 0) + relu
    after = "leaky_relu" if "leaky" in op.name else "tanh" if op.name.endswith("_tanh") else None
    function = unary(SINGLE, after, outputs) or Work()
    return integer_product(mac, outputs) + function + (quantised(SINGLE, outputs, 0) if after else Work())


@formula(
    "quantized::linear_dynamic_fp16_unpacked_weight", "onednn::linear_dynamic_fp16", "onednn::linear_relu_dynamic_fp16"
)
def dense_half(op: Op) -> Work:
    """Real inputs by weights of half precision."""
    given = op.arguments
    inputs: Array = first_of(given, "X", "x")
    outputs = result_of(op).size
    relu = outputs if "relu" in op.name else 0
    bias = outputs if given.get("bias") is not None else 0
    return work(inputs, mac=outputs * inputs.shape[-1], add=bias, minmax=relu)


@formula(
    "aten::fbgemm_linear_fp16_weight",
    "aten::fbgemm_linear_fp16_weight_fp32_activation",
    "_quantized::wrapped_fbgemm_linear_fp16_weight",
)
def dense_half_packed(op: Op) -> Work:
    """The same, with packed weights; how many outputs there are is seen from the result."""
    inputs: Array = first_of(op.arguments, "input", "X")
    outputs = result_of(op).size
    bias = op.arguments.get("bias", op.arguments.get("B"))
    return work(inputs, mac=outputs * inputs.shape[-1], add=0 if bias is None else outputs)


@formula("aten::fbgemm_linear_int8_weight", "aten::fbgemm_linear_int8_weight_fp32_activation")
def dense_dynamic(op: Op) -> Work:
    """Real inputs, quantised here, by integer weights."""
    inputs: Array = op.arguments["input"]
    outputs = result_of(op).size
    bias = op.arguments.get("bias") is not None
    return dynamic_product(inputs.size, outputs * inputs.shape[-1], outputs, bias=bias)


@formula(
    "_quantized::wrapped_quantized_linear",
    "_quantized::_wrapped_quantized_linear_prepacked",
    "aten::_wrapped_quantized_linear_prepacked",
)
def dense_wrapped(op: Op) -> Work:
    """Real inputs and results with given scales; weights that are not packed are quantised too."""
    given = op.arguments
    inputs: Array = first_of(given, "X", "input")
    outputs = result_of(op).size
    weight: Array | None = given.get("W")
    packing = quantised(SINGLE, weight.size) if weight is not None else Work()
    made = quantised(SINGLE, inputs.size) + packing + integer_product(outputs * inputs.shape[-1], outputs)
    return made + dequantised(SINGLE, outputs)


@formula(
    *(
        f"{space}::{name}{end}"
        for space in ("quantized", "_quantized")
        for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
        for end in ("", "_relu", "_dynamic")
    ),
    "quantized::conv2d_add",
    "quantized::conv2d_add_relu",
)
def convolve(op: Op) -> Work | Unknown:
    """Like linear layers; with a sum, the other's integers are scaled and added."""
    given = op.arguments
    packed = _packed(given.get("packed_weight", given.get("weight")))
    if packed is None:
        return Unknown(op.name)
    inputs: Array = given["qx"]
    result = result_of(op)
    weight, bias, *rest = packed
    transposed = "_transpose" in op.name
    if len(rest) < 3 and "stride" in given:
        rest = [given["stride"], given["padding"], given["dilation"]]
    # Those of one dimension are kept as of two, as the weights are.
    rest = [list(each)[-(len(inputs.shape) - 2) :] for each in rest]
    placed: dict[str, Any] = dict(zip(_PLACES, rest, strict=False)) if len(rest) >= 3 else {}
    shape = _unflattened(weight.shape, inputs)
    mac, padding = products(sizes_of(inputs.shape, shape, result.shape, transposed=transposed, **placed))
    padding = padding if placed else 0
    if op.name.endswith("_dynamic"):
        return dynamic_product(inputs.size, mac, result.size, bias=bias is not None, padding=padding)
    made = integer_product(mac, result.size, padding=padding)
    return made + work(SINGLE, mul=result.size, add=result.size) if "_add" in op.name else made


def _unflattened(weight: tuple[int, ...], inputs: Array) -> tuple[int, ...]:
    # One-dimensional convolutions keep their weights as those of two dimensions, the first of which is 1.
    return weight[:2] + weight[3:] if len(weight) == 4 and len(inputs.shape) == 3 and weight[2] == 1 else weight


@formula("mkldnn_prepacked::conv2d_run")
def convolve_packed(op: Op) -> Work | Unknown:
    """Real numbers, packed weights."""
    packed = _packed(op.arguments["W_prepack"])
    if packed is None:
        return Unknown(op.name)
    inputs: Array = op.arguments["X"]
    result = result_of(op)
    known = len(packed) > 4
    placed: dict[str, Any] = dict(zip(_PLACES, packed[2:], strict=False)) if known else {}
    mac, padding = products(sizes_of(inputs.shape, packed[0].shape, result.shape, **placed))
    return work(inputs, mac=mac, padding=padding if known else 0, add=0 if packed[1] is None else result.size)


@formula("onednn::qlinear_pointwise")
def dense_pointwise(op: Op) -> Work | Unknown:
    """Quantised inputs and weights; a bias and what follows is real, and the result may be quantised again."""
    inputs: Array = op.arguments["qx"]
    result = result_of(op)
    return _pointwise(op, integer_product(result.size * inputs.shape[-1], result.size))


@formula(
    "onednn::qconv1d_pointwise",
    "onednn::qconv2d_pointwise",
    "onednn::qconv3d_pointwise",
    "onednn::qconv_pointwise",
)
def convolve_pointwise(op: Op) -> Work | Unknown:
    """The same."""
    given = op.arguments
    inputs: Array = given["qx"]
    weight: Array = given["qw"]
    result = result_of(op)
    sizes = sizes_of(
        inputs.shape,
        weight.shape,
        result.shape,
        stride=given["stride"],
        padding=given["padding"],
        dilation=given["dilation"],
        dims=len(inputs.shape) - 2,
    )
    mac, padding = products(sizes)
    return _pointwise(op, integer_product(mac, result.size, padding=padding))


def _pointwise(op: Op, made: Work) -> Work | Unknown:
    given = op.arguments
    result = result_of(op)
    size = result.size
    one = first_of(given, "post_op_name", "unary_post_op", "unary_attr", "attr")
    form = first_of(
        {"": None, **given}, "post_op_algorithm", "unary_post_op_algorithm", "unary_algorithm", "algorithm", ""
    )
    both = given.get("binary_post_op", given.get("binary_attr"))
    function = unary(SINGLE, "gelu_tanh" if one == "gelu" and form == "tanh" else one, size)
    joined = binary(SINGLE, both, size)
    if function is None or joined is None:
        return Unknown(op.name)
    bias = work(SINGLE, add=size if given.get("bias") is not None else 0)
    other: Array | None = given.get("other", given.get("qaccum")) if both not in (None, "", "none") else None
    widened = dequantised(SINGLE, size) if other is not None and not numbers_of(other).dtype.floating else Work()
    narrowed = Work() if numbers_of(result).dtype.floating else quantised(SINGLE, size, 0)
    return made + bias + widened + joined + function + narrowed


@formula("aten::fbgemm_linear_quantize_weight")
def quantise_weight(op: Op) -> Work:
    """Weights by their least and largest."""
    size = op.arguments["input"].size
    return parameters(SINGLE, size) + quantised(SINGLE, size)


@formula("quantized::matmul")
def multiply(op: Op) -> Work:
    """Batches of quantised matrices."""
    inputs: Array = op.arguments["qa"]
    result = result_of(op)
    return integer_product(result.size * inputs.shape[-1], result.size)


def _packed(given: Any) -> list[Any] | None:
    shown = isinstance(given, (list, tuple)) and len(given) >= 2 and isinstance(given[0], Array)
    return list(given) if shown else None
