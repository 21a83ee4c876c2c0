"""The shapes that come out of operators that onnxruntime's optimisers and quantisers write; onnx knows none of them.

Source: the operator documentation of onnxruntime (ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.formats.onnx import contrib_attention  # noqa: F401  # registers its rules
from flopwatch.formats.onnx.contrib_rules import FLOAT, INT32, RULES, UINT8, Inputs, broadcast, of, rule
from flopwatch.formats.onnx.values import Value, common


def shapes(kind: str, inputs: Inputs, attributes: Mapping[str, Any], outputs: int) -> list[Value] | None:
    """The outputs of such an operator; None if nothing can be said of them."""
    domain, _, name = kind.rpartition(".")
    rule = RULES.get(name) if domain in ("com.microsoft", "") else None
    if rule is None:
        return None
    try:
        found = rule(inputs, attributes)
    except (IndexError, TypeError, ValueError, AttributeError):  # an input that is missing or of unknown shape
        return None
    return (found + [Value()] * outputs)[:outputs]


@rule(
    "BiasAdd",
    "BiasGelu",
    "BiasSoftmax",
    "FastGelu",
    "Gelu",
    "QuickGelu",
    "GroupNorm",
    "QLinearLeakyRelu",
    "QLinearSigmoid",
)
@rule(
    "QLinearSoftmax",
    "RotaryEmbedding",
    "MoE",
    "QMoE",
    "Trilu",
    "Inverse",
    "BiasDropout",
    "BitmaskDropout",
    "SkipGroupNorm",
)
def _alike(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    return [Value(first.shape, first.dtype)] * (1 if len(inputs) < 4 else 2)


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization")
def _norm(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    sizes = first.sizes
    rows = Value((*sizes[:-1], 1), FLOAT)
    return [Value(sizes, first.dtype), rows, rows, Value(sizes, first.dtype)]


@rule(
    "FusedMatMul",
    "TransposeMatMul",
    "FusedMatMulActivation",
    "MatMulInteger16",
    "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat",
)
def _matmul(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    one, two = of(inputs, 0), of(inputs, 1)
    left, right = list(one.sizes), list(two.sizes)
    if attributes.get("transBatchA"):
        left = [*left[1:-1], left[0], left[-1]]
    if attributes.get("transBatchB"):
        right = [*right[1:-1], right[0], right[-1]]
    if attributes.get("transA") and len(left) > 1:
        left[-2:] = left[:-3:-1]
    if attributes.get("transB") and len(right) > 1:
        right[-2:] = right[:-3:-1]
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else []
    dtype = one.dtype if one.dtype in (1, 10, 11, 16) else INT32 if len(inputs) < 3 else _scale(inputs)
    return [Value((*broadcast(left[:-2], right[:-2]), *rows, *columns), dtype)]


def _scale(inputs: Inputs) -> int:
    return next((value.dtype for value in inputs[2:] if value is not None and value.dtype in (1, 10, 16)), FLOAT)


@rule("MatMulNBits", "MatMulBnb4")
def _packed(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    return [Value((*first.sizes[:-1], int(attributes["N"])), first.dtype)]


@rule("FusedGemm", "GemmFastGelu", "GemmFloat8", "QGemm")
def _gemm(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    quantized = len(inputs) >= 6
    left, right = of(inputs, 0), of(inputs, 3 if quantized else 1)
    rows = left.sizes[:-1] if not attributes.get("transA") else left.sizes[1:]
    columns = right.sizes[0] if attributes.get("transB") else right.sizes[1]
    asked = len(inputs) > 7 and inputs[7] is not None
    return [Value((*rows, columns), left.dtype if not quantized or asked else FLOAT)]


@rule("QLinearAdd", "QLinearMul")
def _both(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    one, two = of(inputs, 0), of(inputs, 3)
    return [Value(broadcast(one.sizes, two.sizes), one.dtype)]


@rule("QLinearWhere")
def _where(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    chosen = broadcast(of(inputs, 1).sizes, of(inputs, 4).sizes)
    return [Value(broadcast(of(inputs, 0).sizes, [size or 0 for size in chosen]), of(inputs, 1).dtype)]


@rule("QLinearConcat")
def _concat(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    parts = [of(inputs, place) for place in range(2, len(inputs), 3)]
    sizes = list(parts[0].sizes)
    sizes[attributes["axis"]] = sum(part.sizes[attributes["axis"]] for part in parts)
    return [Value(tuple(sizes), parts[0].dtype)]


@rule("QLinearGlobalAveragePool")
def _global(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    sizes = first.sizes
    last = attributes.get("channels_last", 0)
    ones = (1,) * (len(sizes) - 2)
    return [Value((sizes[0], *ones, sizes[-1]) if last else (*sizes[:2], *ones), first.dtype)]


@rule("QLinearReduceMean", "ReduceSumInteger")
def _reduce(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    sizes = first.sizes
    axes = {axis % len(sizes) for axis in attributes.get("axes", range(len(sizes)))}
    keep = attributes.get("keepdims", 1)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(sizes) if keep or axis not in axes)
    return [Value(shape, first.dtype)]


@rule("CDist")
def _distances(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    one, two = of(inputs, 0), of(inputs, 1)
    return [Value((one.sizes[0], two.sizes[0]), one.dtype)]


@rule("ComplexMul", "ComplexMulConj", "MulInteger")
def _elements(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    one, two = (of(inputs, 0), of(inputs, 1 if len(inputs) < 4 else 2))
    return [Value(broadcast(one.sizes, two.sizes), one.dtype if one.dtype in (1, 10) else INT32)]


@rule("QuantizeLinear", "DequantizeLinear")
def _quantized(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first, scale = of(inputs, 0), of(inputs, 1)
    zero = inputs[2] if len(inputs) > 2 else None
    into = zero.dtype if zero is not None else UINT8
    return [Value(first.sizes, into if first.dtype in (1, 10, 16) else scale.dtype)]


@rule("Pad")
def _padded(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first, pads = of(inputs, 0), of(inputs, 1)
    amounts = pads.data.reshape(-1).tolist()
    half = len(amounts) // 2
    sizes = zip(first.sizes, amounts[:half], amounts[half:], strict=True)
    return [Value(tuple(size + before + after for size, before, after in sizes), first.dtype)]


@rule("ExpandDims")
def _expanded(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    axis = int(of(inputs, 1).data.reshape(-1)[0]) % (len(first.sizes) + 1)
    return [Value((*first.sizes[:axis], 1, *first.sizes[axis:]), first.dtype)]


@rule("GatherND")
def _gathered(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    data, indices = of(inputs, 0), of(inputs, 1)
    return [Value((*indices.sizes[:-1], *data.sizes[indices.sizes[-1] :]), data.dtype)]


@rule("TorchEmbedding")
def _looked_up(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    table, indices = of(inputs, 0), of(inputs, 1)
    return [Value((*indices.sizes, *table.sizes[1:]), table.dtype)]


@rule("DynamicQuantizeLSTM")
def _lstm(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    data, recurrent = of(inputs, 0), of(inputs, 2)
    steps, batch, _ = data.sizes
    directions, hidden = recurrent.sizes[0], recurrent.sizes[1]  # (directions, hidden, 4 hidden): as it was transposed
    state = Value((directions, batch, hidden), FLOAT)
    return [Value((steps, directions, batch, hidden), FLOAT), state, state]


@rule("BiasSplitGelu")
def _split(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first = of(inputs, 0)
    return [Value((*first.sizes[:-1], first.sizes[-1] // 2), first.dtype)]


@rule("FusedConv")
def _conv(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    return _as("Conv", inputs[:2], attributes, ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))


@rule("QLinearAveragePool")
def _pool(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    if attributes.get("channels_last"):
        raise ValueError("images with their channels last")
    first = of(inputs, 0)
    names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    found = _as("AveragePool", [Value(first.shape, FLOAT)], attributes, names)
    return [Value(found[0].shape, first.dtype)]


@rule("GridSample")
def _grid(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    data, grid = of(inputs, 0), of(inputs, 1)
    return [Value((*data.sizes[:2], *grid.sizes[1:-1]), data.dtype)]


def _as(kind: str, inputs: Inputs, attributes: Mapping[str, Any], names: Sequence[str]) -> list[Value]:
    """The outputs of onnx's own operator that this one does the shapes of."""
    from onnx import helper, shape_inference

    from flopwatch.formats.onnx.inference import schema_of
    from flopwatch.formats.onnx.values import of_type, type_of

    given = {name: attributes[name] for name in names if name in attributes}
    places = [f"i{place}" for place in range(len(inputs))]
    node = helper.make_node(kind, places, ["o"], **given)
    types = {name: type_of(common([value or Value()])) for name, value in zip(places, inputs, strict=True)}
    found = shape_inference.infer_node_outputs(
        schema_of(kind, 13, ""), node, types, opset_imports=[helper.make_opsetid("", 13)]
    )
    return [of_type(found["o"])]
