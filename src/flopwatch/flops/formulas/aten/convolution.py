"""Convolutions under all the names that PyTorch and its backends have for them."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula
from flopwatch.flops.formulas.convolution import Sizes, backward, convolution, sizes_of


@formula(
    "aten::convolution",
    "aten::_convolution",
    "aten::_convolution_mode",
    "aten::convolution_overrideable",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
)
def convolve(op: Op) -> Work:
    """`weight` is (C_out, C_in / groups, kernel …); transposed: (C_in, C_out / groups, kernel …)."""
    given = op.arguments
    transposed: bool = given.get("transposed", False)
    return _forward(given["input"], given["weight"], given.get("bias"), op, transposed=transposed)


@formula("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
def convolve_transposed(op: Op) -> Work:
    """`weight` is (C_in, C_out / groups, kernel …)."""
    given = op.arguments
    return _forward(given["input"], given["weight"], given.get("bias"), op, transposed=True)


@formula("aten::convolution_backward", "aten::convolution_backward_overrideable")
def convolve_backward(op: Op) -> Work:
    """`output_mask` says whether the gradients by input, weights and bias are wanted."""
    given = op.arguments
    gradient: Array = given["grad_output"]
    weight: Array = given["weight"]
    by_input, by_weight, by_bias = given["output_mask"]
    sizes = _sizes(given["input"], weight, gradient, op, transposed=given["transposed"])
    channels = gradient.shape[-len(sizes.axes) - 1] if by_bias else 0
    return backward(
        gradient, sizes, inputs=by_input, weights=by_weight, channels=channels, outputs=gradient.size if by_bias else 0
    )


def _forward(inputs: Array, weight: Array, bias: Array | None, op: Op, *, transposed: bool = False) -> Work:
    result = op.outputs[0]
    assert result is not None, op
    sizes = _sizes(inputs, weight, result, op, transposed=transposed)
    return convolution(inputs, sizes, bias=0 if bias is None else result.size)


def _sizes(inputs: Array, weight: Array, outputs: Array, op: Op, *, transposed: bool) -> Sizes:
    given = op.arguments
    return sizes_of(
        inputs.shape,
        weight.shape,
        outputs.shape,
        stride=given.get("stride") or (1,),
        padding=given.get("padding") or (0,),
        dilation=given.get("dilation") or (1,),
        transposed=transposed,
    )
