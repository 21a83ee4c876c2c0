"""Convolutions: forward, transposed, deformable, of integers, and with what onnxruntime fuses into them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas.convolution import convolution, sizes_of
from flopwatch.flops.formulas.onnx.arguments import given, has, ints, result
from flopwatch.flops.formulas.onnx.elementwise import activation
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


def padding_of(op: Op, inputs: Sequence[int], outputs: Sequence[int], kernel: Sequence[int]) -> Sequence[int]:
    """How much padding lies before each dimension; "SAME" puts the odd one behind (upper) or before (lower)."""
    dims = len(kernel)
    automatic = op.arguments.get("auto_pad") or "NOTSET"
    if automatic == "VALID":
        return (0,) * dims
    if automatic == "NOTSET":
        return tuple(ints(op, "pads", (0,) * (2 * dims)))[:dims]
    before = []
    strides, dilations = ints(op, "strides", (1,) * dims), ints(op, "dilations", (1,) * dims)
    for size, made, taps, stride, dilation in zip(inputs, outputs, kernel, strides, dilations, strict=True):
        whole = max(0, (made - 1) * stride + (taps - 1) * dilation + 1 - size)
        before.append(whole // 2 if automatic == "SAME_UPPER" else whole - whole // 2)
    return before


def convolved(op: Op, data: Array, weight: Array, *, bias: bool) -> Work:
    """A convolution of (batch, channels, …) with (out, in / groups, kernel …)."""
    made = result(op)
    kernel = weight.shape[2:]
    dims = len(kernel)
    sizes = sizes_of(
        data.shape,
        weight.shape,
        made.shape,
        stride=ints(op, "strides", (1,) * dims),
        padding=padding_of(op, data.shape[2:], made.shape[2:], kernel),
        dilation=ints(op, "dilations", (1,) * dims),
    )
    return convolution(data, sizes, bias=made.size if bias else 0)


@formula("onnx::Conv")
def conv(op: Op) -> Work:
    """X with W, plus B."""
    return convolved(op, given(op, "X"), given(op, "W"), bias=has(op, "B"))


@formula("com.microsoft::FusedConv")
def fused(op: Op) -> Work | Unknown:
    """activation(X with W + B + Z)."""
    made = result(op)
    after = activation(op.arguments.get("activation"), made, op.arguments.get("activation_params"))
    if isinstance(after, Unknown):
        return after
    added = work(made, add=made.size if has(op, "Z") else 0)
    return conv(op) + added + after


@formula("com.microsoft::NhwcConv", "com.microsoft::NhwcFusedConv")
def channels_last(op: Op) -> Work | Unknown:
    """The same with the channels as the last dimension of images and kernels."""

    def turned(array: Array) -> Array:
        shape = array.shape
        return Array((shape[0], shape[-1], *shape[1:-1]), array.dtype)

    arguments = {**op.arguments, "X": turned(given(op, "X")), "W": turned(given(op, "W"))}
    return fused(Op(op.name, arguments, (turned(result(op)),)))


@formula("onnx::ConvInteger")
def integers(op: Op) -> Work:
    """Integers that come out as int32."""
    return convolved(op, given(op, "x"), given(op, "w"), bias=False)


@formula("onnx::QLinearConv")
def quantized(op: Op) -> Work:
    """Integers with a scale: the products are OP; the sums are scaled to the integers of the result.

    That scaling, a product with x_scale · w_scale / y_scale, and rounding are floating-point work: one product for each element,
    and for each scale of the weights a product and a quotient before.
    """
    made, scale = result(op), given(op, "w_scale")
    scaled = work(given(op, "x_scale"), mul=made.size + scale.size, div=scale.size)
    return convolved(op, given(op, "x"), given(op, "w"), bias=has(op, "B")) + scaled


@formula("com.microsoft::QLinearConv")
def quantized_channels(op: Op) -> Work | Unknown:
    """The same, also with the channels last: then the kernels are still (out, in / groups, kernel …)."""
    if not op.arguments.get("channels_last"):
        return quantized(op)
    data, made = given(op, "x"), result(op)
    turned = [Array((each.shape[0], each.shape[-1], *each.shape[1:-1]), each.dtype) for each in (data, made)]
    return quantized(Op(op.name, {**op.arguments, "x": turned[0]}, (turned[1],)))


@formula("onnx::ConvTranspose", "com.microsoft::ConvTransposeWithDynamicPads")
def transposed(op: Op) -> Work:
    """Each input element times a whole kernel, added up: by the positions of the input, not of the output."""
    data, weight, made = given(op, "X"), given(op, "W"), result(op)
    kernel = weight.shape[2:]
    dims = len(kernel)
    strides, dilations = ints(op, "strides", (1,) * dims), ints(op, "dilations", (1,) * dims)
    sizes = sizes_of(
        data.shape,
        weight.shape,
        made.shape,
        stride=strides,
        padding=_cut(op, data.shape[2:], made.shape[2:], kernel, strides, dilations),
        dilation=dilations,
        transposed=True,
    )
    return convolution(data, sizes, bias=made.size if has(op, "B") else 0)


def _cut(
    op: Op,
    inputs: Sequence[int],
    outputs: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Sequence[int]:
    """How much of the result is cut off in front, by the definition's equations for `output_shape` and `auto_pad`."""
    dims = len(kernel)
    automatic = op.arguments.get("auto_pad") or "NOTSET"
    if automatic == "VALID":
        return (0,) * dims
    if automatic == "NOTSET" and not op.arguments.get("output_shape"):
        dynamic = op.arguments.get("Pads_value")
        return tuple(dynamic or ints(op, "pads", (0,) * (2 * dims)))[:dims]
    extra = ints(op, "output_padding", (0,) * dims)
    before = []
    for size, made, taps, stride, dilation, more in zip(
        inputs, outputs, kernel, strides, dilations, extra, strict=True
    ):
        whole = max(0, stride * (size - 1) + more + (taps - 1) * dilation + 1 - made)
        before.append(whole // 2 if automatic == "SAME_UPPER" else whole - whole // 2)
    return before


@formula("onnx::DeformConv")
def deformed(op: Op) -> Work:
    """A convolution whose taps lie where `offset` says (arXiv:1703.06211), each weighed by `mask` (arXiv:1811.11168).

    The products are those of the convolution. Each tap of each position is moved for itself (2 sums), its four corner weights
    are made (2 fractions' complements, 4 products), and each channel is sampled there: four products, summed; then the mask.
    """
    data, weight, made = given(op, "X"), given(op, "W"), result(op)
    mac = made.size * prod(weight.shape[1:])
    positions = made.shape[0] * prod(made.shape[2:]) * prod(weight.shape[2:])
    groups = op.arguments.get("offset_group") or 1
    places, samples = positions * groups, positions * data.shape[1]
    return work(
        data,
        mac=mac,
        add=4 * places + (made.size if has(op, "B") else 0),
        mul=4 * places + samples + (samples if has(op, "mask") else 0),
        fma=3 * samples,
    )


@formula("onnx::CausalConvWithState")
def causal(op: Op) -> Work:
    """A convolution of each channel for itself over the positions up to its own; before the first lies a state or zeros."""
    data, weight, made = given(op, "input"), given(op, "weight"), result(op)
    kernel = weight.shape[-1]
    mac = made.size * kernel
    # Without a state the first outputs reach into nothing: 1, 2, … kernel - 1 taps are real.
    lines, length = made.size // made.shape[-1] if made.size else 0, made.shape[-1]
    missing = 0 if has(op, "past_state") else sum(max(0, kernel - 1 - place) for place in range(min(length, kernel)))
    made_of = work(data, mac=mac, padding=lines * missing, add=made.size if has(op, "bias") else 0)
    kind = op.arguments.get("activation") or "none"
    after = activation("Swish" if kind in ("silu", "swish") else kind, made)
    return made_of + (after if isinstance(after, Work) else Work())


@formula("onnx::Col2Im")
def columns_to_image(op: Op) -> Work:
    """Overlapping blocks added up: one addition for each element of a block."""
    data = given(op, "input")
    return work(numbers_of(data), add=data.size)
