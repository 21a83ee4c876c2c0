"""Scaled dot-product attention under the names of its kernels."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula
from flopwatch.flops.formulas.attention import Heads, attention


@formula(
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_attention_math",
    "aten::_scaled_dot_product_attention_math_for_mps",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_fused_attention_overrideable",
)
def attend(op: Op) -> Work:
    """Queries are (batch …, heads, queries, width), keys and values likewise."""
    given = op.arguments
    query: Array = given["query"]
    mask = given.get("attn_mask") if "attn_mask" in given else given.get("attn_bias")
    sizes = heads_of(query, given["key"], given["value"])
    return attention(query, sizes, masked=mask is not None, causal=bool(given.get("is_causal")))


def heads_of(query: Array, key: Array, value: Array) -> Heads:
    """The sizes where the heads stand before the positions; tensors of two dimensions have one head."""
    shape = query.shape
    heads = shape[-3] if len(shape) > 2 else 1
    batch = 1
    for size in shape[:-3]:
        batch *= size
    shared = key.shape[-3] if len(key.shape) > 2 else 1
    return Heads(batch, heads, shape[-2], key.shape[-2], shape[-1], value.shape[-1], shared)
