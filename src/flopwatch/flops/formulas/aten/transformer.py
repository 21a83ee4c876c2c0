"""The fast paths of torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer, each one operator."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula, work
from flopwatch.flops.formulas.transformer import Layer, encoder_layer, multi_head


@formula("aten::_native_multi_head_attention", "aten::_triton_multi_head_attention")
def native_multi_head(op: Op) -> Work:
    """(batch, positions, width) for queries and keys; all projections have a bias."""
    given = op.arguments
    query: Array = given["query"]
    weights = op.name == "aten::_native_multi_head_attention" and bool(given.get("need_weights", True))
    return multi_head(
        query,
        _layer(query, given["key"], given["num_head"]),
        masked=given.get("mask") is not None,
        weights=weights,
        mean=bool(given.get("average_attn_weights", True)),
    )


@formula("aten::_transformer_encoder_layer_fwd")
def native_encoder_layer(op: Op) -> Work:
    """(batch, positions, width); the hidden layer is as wide as the first dimension of its weights."""
    given = op.arguments
    source: Array = given["src"]
    return encoder_layer(
        source,
        _layer(source, source, given["num_heads"]),
        given["ffn_weight_1"].shape[0],
        activation="gelu" if given["use_gelu"] else "relu",
        masked=given.get("mask") is not None,
    )


@formula("aten::_transform_bias_rescale_qkv")
def biased_and_scaled(op: Op) -> Work:
    """(batch, positions, 3 · width) gets a bias, and its first third is scaled."""
    given: Array = op.arguments["qkv"]
    return work(given, add=given.size, mul=given.size // 3)


def _layer(query: Array, key: Array, heads: int) -> Layer:
    batch = query.shape[0] if len(query.shape) == 3 else 1
    return Layer(batch, query.shape[-2], key.shape[-2], query.shape[-1], heads)
