"""Convolutions under all the names that PyTorch and its backends have for them."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, epilogue, formula, work
from flopwatch.flops.formulas.aten.arguments import first_of, result_of
from flopwatch.flops.formulas.convolution import Axis, Sizes, backward, convolution, sizes_of


@formula(
    "aten::convolution",
    "aten::_convolution",
    "aten::_convolution_mode",
    "aten::convolution_overrideable",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::mkldnn_convolution",
    "aten::cudnn_convolution",
    "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution",
    "aten::_mps_convolution",
    "aten::_nnpack_spatial_convolution",
    "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d",
    "aten::thnn_conv2d",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d",
)
def convolve(op: Op) -> Work:
    """`weight` is (C_out, C_in / groups, kernel …); transposed: (C_in, C_out / groups, kernel …)."""
    return forward(op, transposed=op.arguments.get("transposed", False))


@formula(
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::cudnn_convolution_transpose",
    "aten::miopen_convolution_transpose",
    "aten::_mps_convolution_transpose",
    "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d",
)
def convolve_transposed(op: Op) -> Work:
    """`weight` is (C_in, C_out / groups, kernel …)."""
    return forward(op, transposed=True)


@formula("aten::cudnn_convolution_relu", "aten::miopen_convolution_relu")
def convolve_relu(op: Op) -> Work:
    """With relu of the result."""
    return forward(op) + work(op.arguments["self"], minmax=result_of(op).size)


@formula("aten::cudnn_convolution_add_relu", "aten::miopen_convolution_add_relu")
def convolve_add_relu(op: Op) -> Work:
    """With relu of the result plus alpha · z."""
    size = result_of(op).size
    scaled = 0 if op.arguments.get("alpha") in (None, 1) else size
    return forward(op) + work(op.arguments["self"], minmax=size, add=size, mul=scaled)


@formula(
    "mkldnn::_convolution_pointwise", "mkldnn::_convolution_pointwise_", "mkldnn::_convolution_transpose_pointwise"
)
def convolve_pointwise(op: Op) -> Work | Unknown:
    """With an activation, or arithmetic with another tensor and then an activation."""
    return pointwise(op, forward(op, transposed="transpose" in op.name), op.arguments["X"])


@formula("mkldnn::_linear_pointwise")
def linear_pointwise(op: Op) -> Work | Unknown:
    """A linear layer with an activation, or arithmetic with another tensor."""
    given = op.arguments
    inputs: Array = given["X"]
    size = result_of(op).size
    made = work(inputs, mac=size * inputs.shape[-1], add=0 if given.get("B") is None else size)
    return pointwise(op, made, inputs)


def pointwise(op: Op, made: Work, numbers: Array) -> Work | Unknown:
    """What is added to a product as `attr`, or as `binary_attr` and `unary_attr`."""
    given = op.arguments
    size = result_of(op).size
    fused = "other" in given
    both = epilogue.binary(numbers, given.get("binary_attr", given.get("attr")) if fused else None, size)
    name = given.get("unary_attr") if fused else given.get("attr")
    if name == "gelu" and given.get("algorithm" if not fused else "unary_algorithm") == "tanh":
        name = "gelu_tanh"
    one = epilogue.unary(numbers, name, size)
    if both is None or one is None:
        return Unknown(op.name)
    scaled = size if given.get("alpha") not in (None, 1) and fused else 0
    return made + both + one + work(numbers, mul=scaled)


@formula(
    "aten::convolution_backward",
    "aten::convolution_backward_overrideable",
    "aten::_slow_conv2d_backward",
    "aten::mps_convolution_backward",
)
def convolve_backward(op: Op) -> Work:
    """`output_mask` says whether the gradients by input, weights and bias are wanted; without it, all are."""
    given = op.arguments
    return _backward(op, given.get("output_mask", (True, True, True)), transposed=given.get("transposed", False))


@formula("aten::mps_convolution_transpose_backward")
def convolve_transposed_backward(op: Op) -> Work:
    """`output_mask` is for input and weights."""
    return _backward(op, (*op.arguments["output_mask"], False), transposed=True)


@formula("aten::_convolution_double_backward")
def convolve_double_backward(op: Op) -> Work:
    """Gradients of the gradients, by that of the output, the input and the weights.

    With x, w, g the input, weights and gradient, and X, W, B what comes in for their gradients: conv(X, w) + conv(x, W) + B for
    g, the backward of conv(·, W) by its input for x, that of conv(X, ·) by its weights for w: each as many products as forward.
    """
    given = op.arguments
    gradient: Array = given["gO"]
    by_gradient, by_input, by_weight = given["output_mask"]
    given_input, given_weight, given_bias = (given[name] is not None for name in ("ggI", "ggW", "ggb"))
    terms = given_input + given_weight + given_bias if by_gradient else 0
    products = (
        (given_input + given_weight if by_gradient else 0) + (by_input and given_weight) + (by_weight and given_input)
    )
    sizes = _sizes(given["self"], given["weight"], gradient, op, transposed=given["transposed"])
    return products * convolution(gradient, sizes) + work(gradient, add=max(0, terms - 1) * gradient.size)


@formula("aten::conv_tbc")
def convolve_tbc(op: Op) -> Work:
    """(time, batch, C_in) by (kernel, C_in, C_out), with padding on both sides in time."""
    given = op.arguments
    result = result_of(op)
    inputs: Array = given["self"]
    return convolution(inputs, _tbc(inputs, given["weight"], result, given["pad"]), bias=result.size)


@formula("aten::conv_tbc_backward")
def convolve_tbc_backward(op: Op) -> Work:
    """All three gradients; `self` is that of the result."""
    given = op.arguments
    gradient: Array = given["self"]
    sizes = _tbc(given["input"], given["weight"], gradient, given["pad"])
    return backward(gradient, sizes, inputs=True, weights=True, channels=gradient.shape[2], outputs=gradient.size)


def _tbc(inputs: Array, weight: Array, result: Array, pad: int) -> Sizes:
    axis = Axis(result.shape[0], inputs.shape[0], weight.shape[0], before=pad)
    return Sizes(result.shape[1], weight.size, (axis,))


def forward(op: Op, *, transposed: bool = False) -> Work:
    """A convolution whose arguments have any of the names that are in use for them."""
    given = op.arguments
    inputs: Array = first_of(given, "input", "self", "X")
    weight: Array = first_of(given, "weight", "W")
    bias = given.get("bias") if "bias" in given else given.get("B")
    result = result_of(op)
    sizes = _sizes(inputs, weight, result, op, transposed=transposed)
    return convolution(inputs, sizes, bias=0 if bias is None else result.size)


def _backward(op: Op, mask: tuple[bool, ...], *, transposed: bool) -> Work:
    given = op.arguments
    gradient: Array = given["grad_output"]
    by_input, by_weight, by_bias = mask
    inputs: Array = first_of(given, "input", "self")
    sizes = _sizes(inputs, given["weight"], gradient, op, transposed=transposed)
    channels = gradient.shape[-len(sizes.axes) - 1] if by_bias else 0
    return backward(
        gradient, sizes, inputs=by_input, weights=by_weight, channels=channels, outputs=gradient.size if by_bias else 0
    )


def _sizes(inputs: Array, weight: Array, outputs: Array, op: Op, *, transposed: bool) -> Sizes:
    given = op.arguments
    shape = weight.shape
    kernel = given.get("kernel_size")
    if kernel and len(shape) == 2:
        # Weights that were flattened to a matrix before.
        taps = 1
        for size in kernel:
            taps *= size
        shape = (shape[0], shape[1] // max(1, taps), *kernel)
    return sizes_of(
        inputs.shape,
        shape,
        outputs.shape,
        stride=given.get("stride") or (1,),
        padding=given.get("padding") or (0,),
        dilation=given.get("dilation") or (1,),
        transposed=transposed,
        # Backends keep the groups of their weights in a dimension of its own.
        dims=len(inputs.shape) - 2 if "mkldnn" in op.name else None,
    )
