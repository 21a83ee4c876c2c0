"""Scaled dot-product attention under the names of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, total, work
from flopwatch.flops.formulas.attention import CAUSAL, NO_MASK, Heads, Mask, attention, attention_backward


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
    """Queries are (batch …, heads, queries, width), keys and values likewise; causal masks begin at the upper left corner."""
    given = op.arguments
    query: Array = given["query"]
    sizes = heads_of(query, given["key"], given["value"])
    dropout = float(given.get("dropout_p", 0)) > 0
    return attention(query, sizes, _mask(given), dropout=dropout) + _unscaled(query, sizes, given)


@formula("aten::_triton_scaled_dot_attention")
def attend_triton(op: Op) -> Work:
    """(batch, heads, positions, width)."""
    given = op.arguments
    query: Array = given["q"]
    dropout = float(given.get("dropout_p", 0)) > 0
    return attention(query, heads_of(query, given["k"], given["v"]), dropout=dropout)


@formula(
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_scaled_dot_product_fused_attention_overrideable_backward",
)
def attend_backward(op: Op) -> Work:
    """`grad_input_mask`, where there is one, says whether the gradients by query, key, value and mask are wanted."""
    given = op.arguments
    query: Array = given["query"]
    sizes = heads_of(query, given["key"], given["value"])
    by_query, by_key, by_value, by_mask = given.get("grad_input_mask") or (True, True, True, False)
    bias: Array | None = given.get("attn_bias")
    return attention_backward(
        query,
        sizes,
        _mask(given),
        query=by_query,
        key=by_key,
        value=by_value,
        mask_elements=bias.size if by_mask and bias is not None else 0,
        dropout=float(given.get("dropout_p", 0)) > 0,
    )


@formula(
    "aten::_flash_attention_forward",
    "aten::_flash_attention_forward_no_dropout_inplace",
    "aten::_efficient_attention_forward",
    "aten::_cudnn_attention_forward",
    "torch_attn::_varlen_attn",
    "torch_attn::_varlen_attn_out",
)
def attend_positions_first(op: Op) -> Work | Unknown:
    """Queries are (batch, queries, heads, width), or (tokens, heads, width) for sequences packed one after the other.

    Only the kernel of "cudnn" has (batch, heads, queries, width). Of packed sequences the cumulative lengths are data: they are
    taken where the argument is a list of numbers, or where the sequences must all have the greatest length, so that their tokens
    add up; otherwise, and with a table of pages or keys used in part, the call is unknown.
    """
    given = op.arguments
    query: Array = given["query"]
    every = _sequences(op)
    if every is None:
        return Unknown(f"{op.name} (lengths of packed sequences)")
    dropout = float(given.get("dropout_p", 0)) > 0
    slopes = given.get("alibi_slopes") is not None
    works = []
    for sizes in every:
        works.append(attention(query, sizes, _limits(given, sizes), dropout=dropout) + _unscaled(query, sizes, given))
        if slopes:
            # The bias grows with the distance of query and key: slope · |i - j|, added to each score.
            works.append(work(query, mul=sizes.scores, add=sizes.scores))
    return total(works)


@formula(
    "aten::_flash_attention_backward",
    "aten::_efficient_attention_backward",
    "aten::_cudnn_attention_backward",
    "torch_attn::_varlen_attn_backward",
)
def attend_positions_first_backward(op: Op) -> Work | Unknown:
    """As the forward reads its sizes; all gradients, that by the mask where `bias_requires_grad`."""
    given = op.arguments
    query: Array = given["query"]
    every = _sequences(op)
    if every is None:
        return Unknown(f"{op.name} (lengths of packed sequences)")
    bias: Array | None = given.get("bias")
    elements = bias.size if bias is not None and given.get("bias_requires_grad") else 0
    dropout = float(given.get("dropout_p", 0)) > 0
    return total(
        attention_backward(query, sizes, _limits(given, sizes), mask_elements=elements, dropout=dropout)
        for sizes in every
    )


def heads_of(query: Array, key: Array, value: Array) -> Heads:
    """The sizes where the heads stand before the positions; tensors of two dimensions have one head."""
    shape = query.shape
    heads = shape[-3] if len(shape) > 2 else 1
    shared = key.shape[-3] if len(key.shape) > 2 else 1
    # All other dimensions are broadcast between queries, keys and values.
    batch = max(prod(shape[:-3]), prod(key.shape[:-3])) if query.size and key.size else prod(shape[:-3])
    return Heads(batch, max(heads, shared), shape[-2], key.shape[-2], shape[-1], value.shape[-1], shared)


def _mask(given: Mapping[str, Any]) -> Mask:
    added = given.get("attn_mask") is not None or given.get("attn_bias") is not None
    if not added:
        return CAUSAL if given.get("is_causal") else NO_MASK
    return Mask(added=True, right=0 if given.get("is_causal") else None)


def _unscaled(query: Array, sizes: Heads, given: Mapping[str, Any]) -> Work:
    """What is left to do after products of 8-bit numbers: the scales of Q and K go with that of the scores, V's comes last."""
    if given.get("v_descale") is None:
        return Work()
    return work(query, mul=sizes.rows * sizes.value)


def _limits(given: Mapping[str, Any], sizes: Heads) -> Mask:
    added = given.get("bias") is not None or given.get("attn_bias") is not None
    shift = sizes.keys - sizes.queries
    kind = given.get("custom_mask_type", 0)
    if kind:
        # 1: from the upper left corner, 2: from the lower right one.
        window = given.get("window_size")
        left = window - 1 if window else None
        return Mask(added, left, 0, shift if kind == 2 else 0)
    left, right = given.get("window_size_left"), given.get("window_size_right")
    if given.get("window_size"):
        left, right = given["window_size"]
    left, right = (None if side is None or side < 0 else side for side in (left, right))
    if given.get("is_causal"):
        right = 0
    upper_left = "compute_log_sumexp" in given or "attn_bias" in given
    return Mask(added, left, right, 0 if upper_left else shift)


def _sequences(op: Op) -> list[Heads] | None:
    given = op.arguments
    query: Array = given["query"]
    key: Array = given["key"]
    value: Array = given["value"]
    if any(given.get(name) is not None for name in ("seqused_k", "block_table", "seqlen_k", "page_table", "seqused")):
        return None
    ends = [
        _first(given, "cum_seq_q", "cu_seqlens_q", "cu_seq_q"),
        _first(given, "cum_seq_k", "cu_seqlens_k", "cu_seq_k"),
    ]
    packed = len(query.shape) == 3
    if ends[0] is None or (not packed and "_efficient" not in op.name):
        if "_cudnn" in op.name:
            return [heads_of(query, key, value)]
        batch, queries, heads, width = query.shape if len(query.shape) == 4 else (1, *query.shape)
        return [Heads(batch, heads, queries, key.shape[-3], width, value.shape[-1], key.shape[-2])]
    tokens = query.shape[-3], key.shape[-3]
    longest = (
        _first(given, "max_q", "max_seqlen_q"),
        _first(given, "max_k", "max_seqlen_k"),
    )
    lengths = [_lengths(*each) for each in zip(ends, tokens, longest, strict=True)]
    if lengths[0] is None or lengths[1] is None:
        return None
    heads, width = query.shape[-2:]
    return [
        Heads(1, heads, queries, keys, width, value.shape[-1], key.shape[-2])
        for queries, keys in zip(*lengths, strict=True)
    ]


def _first(given: Mapping[str, Any], *names: str) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _lengths(ends: Array | Sequence[int] | None, tokens: int, longest: int | None) -> list[int] | None:
    if ends is None:
        return None
    if not isinstance(ends, Array):
        return [end - start for start, end in pairwise(ends)]
    count = ends.size - 1
    if count == 1:
        return [tokens]
    return [longest] * count if longest is not None and count * longest == tokens else None
