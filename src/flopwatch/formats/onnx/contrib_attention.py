"""The shapes that come out of onnxruntime's operators for attention and embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flopwatch.formats.onnx.contrib_rules import FLOAT, INT32, Inputs, of, rule
from flopwatch.formats.onnx.values import Value


@rule("Attention", "QAttention")
def _attention(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    first, weights = of(inputs, 0), of(inputs, 1)
    batch, tokens, _ = first.sizes
    quantized = len(inputs) > 3 and first.dtype in (2, 3)
    past = inputs[8 if quantized else 4] if len(inputs) > (8 if quantized else 4) else None
    sizes = attributes.get("qkv_hidden_sizes") or [weights.sizes[1] // 3] * 3
    dtype = of(inputs, 3).dtype if quantized else first.dtype
    before = past.sizes[3] if past is not None else 0
    heads = attributes["num_heads"]
    present = Value((2, batch, heads, before + tokens, sizes[0] // heads), dtype)
    return [Value((batch, tokens, sizes[2]), dtype), present]


@rule("MultiHeadAttention")
def _heads(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    query = of(inputs, 0)
    heads = attributes["num_heads"]
    batch, tokens = query.sizes[:2]
    past = inputs[6] if len(inputs) > 6 else None
    before = past.sizes[2] if past is not None else 0
    if len(query.sizes) == 5:  # (batch, tokens, heads, 3, width)
        width = value = query.sizes[4]
        keys = tokens
    else:
        key = of(inputs, 1)
        width = query.sizes[2] // heads
        third = inputs[2] if len(inputs) > 2 else None
        keys = key.sizes[1] if len(key.sizes) in (3, 5) else key.sizes[2]
        value = width if third is None else third.sizes[2] // heads if len(third.sizes) == 3 else third.sizes[3]
    dtype = query.dtype
    return [
        Value((batch, tokens, heads * value), dtype),
        Value((batch, heads, before + keys, width), dtype),
        Value((batch, heads, before + keys, value), dtype),
    ]


@rule("GroupQueryAttention")
def _grouped(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    query = of(inputs, 0)
    heads, shared = attributes["num_heads"], attributes["kv_num_heads"]
    batch, tokens, hidden = query.sizes
    packed = inputs[1] is None
    width = hidden // (heads + 2 * shared) if packed else hidden // heads
    total = inputs[6] if len(inputs) > 6 else None
    past = inputs[3] if len(inputs) > 3 else None
    length = None
    if total is not None and total.data is not None:
        length = int(total.data.reshape(-1)[0])
    elif past is not None:
        length = past.sizes[2] + tokens
    else:
        length = tokens
    present = Value((batch, shared, length, width), query.dtype)
    return [Value((batch, tokens, heads * width), query.dtype), present, present]


@rule("EmbedLayerNormalization", "QEmbedLayerNormalization")
def _embedding(inputs: Inputs, attributes: Mapping[str, Any]) -> list[Value]:
    words, table = of(inputs, 0), of(inputs, 2)
    shape = (*words.sizes, table.sizes[1])
    dtype = table.dtype if table.dtype in (1, 10, 16) else FLOAT
    return [Value(shape, dtype), Value((words.sizes[0],), INT32), Value(shape, dtype)]
