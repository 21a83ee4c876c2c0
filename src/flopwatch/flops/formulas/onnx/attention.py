"""Attention: onnx's own operator, and those that onnxruntime's optimiser puts in the place of a whole layer."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas.attention import Heads, Mask, attention
from flopwatch.flops.formulas.onnx.arguments import given, has, result, value
from flopwatch.flops.formulas.products import linear
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


def _mask(op: Op, *, added: bool, causal: bool, past: int) -> Mask:
    """The mask: a causal one and a window begin after the keys of the past."""
    left, right = (op.arguments.get(f"{side}_window_size", -1) for side in ("left", "right"))
    nearest = 0 if causal else right if right is not None and right >= 0 else None
    return Mask(added, left if left is not None and left >= 0 else None, nearest, past)


@formula("onnx::Attention")
def scaled_dot_product(op: Op) -> Work:
    """Q, K and V of shape (batch, heads, tokens, width), or (batch, tokens, heads · width); keys of the past stand before."""
    query, key, third = given(op, "Q"), given(op, "K"), given(op, "V")
    heads, shared = op.arguments.get("q_num_heads"), op.arguments.get("kv_num_heads")
    past = op.arguments.get("past_key")
    before = past.shape[2] if isinstance(past, Array) else 0
    if len(query.shape) == 4:
        batch, heads, queries, width = query.shape
        shared, keys, deep = key.shape[1], key.shape[2], third.shape[3]
    else:
        batch, queries, hidden = query.shape
        heads, shared = int(heads or 1), int(shared or heads or 1)
        keys, width, deep = key.shape[1], hidden // heads, third.shape[2] // shared
    sizes = Heads(batch, heads, queries, before + keys, width, deep, shared)
    mask = _mask(op, added=has(op, "attn_mask"), causal=bool(op.arguments.get("is_causal")), past=before)
    found = attention(query, sizes, mask)
    return found + _capped(query, sizes, op.arguments.get("softcap"))


def _capped(numbers: Array, sizes: Heads, cap: object) -> Work:
    """cap·tanh(score/cap) for each score."""
    scores = sizes.rows * sizes.keys
    return work(numbers, div=scores, transcendental=scores, mul=scores) if cap else Work()


@formula("onnx::LinearAttention")
def linear_attention(op: Op) -> Work | Unknown:
    """A state of (keys' width) × (values' width) for each head instead of scores (arXiv:2006.16236, arXiv:2412.06464).

    Each step: the state takes up k ⊗ v, a multiply-accumulate for each of its numbers, and each head of queries reads it, another
    one. "gated": the state is scaled by the exponential of the decay before, a product for each number. "delta": what the state has
    for k is read first, a third product, subtracted from v and scaled by beta.
    """
    query, key, third = given(op, "query"), given(op, "key"), given(op, "value")
    rule = op.arguments.get("update_rule") or "gated_delta"
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        return Unknown(f"{op.name} by the rule {rule}")
    heads, shared = op.arguments["q_num_heads"], op.arguments["kv_num_heads"]
    batch, tokens = query.shape[:2]
    width, deep = key.shape[2] // shared, third.shape[2] // shared
    steps = batch * tokens * shared
    state = width * deep
    mac = steps * state + batch * tokens * heads * state
    gated, delta = "gated" in rule, "delta" in rule
    decay = op.arguments.get("decay")
    exponentials = decay.size if gated and isinstance(decay, Array) else 0
    return work(
        query,
        mac=mac + (steps * state if delta else 0),
        mul=(steps * state if gated else 0) + (steps * deep if delta else 0) + batch * tokens * heads * deep,
        add=steps * deep if delta else 0,
        transcendental=exponentials,
    )


@formula("onnx::RotaryEmbedding", "com.microsoft::RotaryEmbedding")
def rotated(op: Op) -> Work:
    """Pairs of numbers turned by an angle (arXiv:2104.09864): two products with a sum for each number that is turned."""
    array = result(op)
    turned = op.arguments.get("rotary_embedding_dim") or 0
    cosines = op.arguments.get("cos_cache")
    if turned:
        heads = op.arguments.get("num_heads") or 0
        if len(array.shape) == 4:
            vectors = prod(array.shape[:-1])
        elif heads:
            vectors = prod(array.shape[:-1]) * heads
        else:
            vectors = array.size // array.shape[-1] if array.size else 0
        size = vectors * turned
    elif isinstance(cosines, Array) and len(array.shape) == 4:
        size = prod(array.shape[:-1]) * min(2 * cosines.shape[-1], array.shape[-1])
    else:
        size = array.size
    return work(array, mul=size, fma=size)


@formula("com.microsoft::Attention", "com.microsoft::QAttention")
def layer(op: Op) -> Work:
    """A whole layer: queries, keys and values are made of `input` by one weight matrix, then attend to each other.

    Of quantized input and weights the first product is one of integers, whose sums are scaled.
    """
    data = given(op, "input")
    weights = given(op, "weights", "weight")
    heads = op.arguments["num_heads"]
    past = op.arguments.get("past")
    before = past.shape[3] if isinstance(past, Array) else 0
    batch, tokens, hidden = data.shape
    whole = weights.shape[1]
    queries, _, values = op.arguments.get("qkv_hidden_sizes") or [whole // 3] * 3
    numbers = result(op)
    made = linear(data, batch * tokens, hidden, whole)
    after = work(numbers, add=batch * tokens * whole if has(op, "bias") else 0)
    if op.name.endswith("QAttention"):
        after += work(numbers, mul=batch * tokens * whole + given(op, "weight_scale").size)
    sizes = Heads(batch, heads, tokens, before + tokens, queries // heads, values // heads, heads)
    masked = has(op, "mask_index") or has(op, "attention_bias")
    mask = _mask(op, added=masked, causal=bool(op.arguments.get("unidirectional")), past=before)
    return made + after + attention(numbers, sizes, mask)


@formula("com.microsoft::MultiHeadAttention")
def many_heads(op: Op) -> Work:
    """Attention between projected queries, keys and values of (batch, tokens, heads · width), or packed into one tensor."""
    query = given(op, "query")
    heads = op.arguments["num_heads"]
    past = op.arguments.get("past_key")
    before = past.shape[2] if isinstance(past, Array) else 0
    batch, queries = query.shape[:2]
    key, third = op.arguments.get("key"), op.arguments.get("value")
    if len(query.shape) == 5:  # (batch, tokens, heads, 3, width)
        keys, width = queries, query.shape[4]
        deep = width
    else:
        width = query.shape[2] // heads
        keys = queries
        if isinstance(key, Array):
            keys = key.shape[2] if len(key.shape) == 4 else key.shape[1]
        deep = width
        if isinstance(third, Array):
            deep = third.shape[3] if len(third.shape) == 4 else third.shape[2] // heads
    sizes = Heads(batch, heads, queries, before + keys, width, deep, heads)
    masked = has(op, "key_padding_mask") or has(op, "attention_bias")
    shifted = batch * heads * (queries * width + keys * (width + deep)) if has(op, "bias") else 0
    mask = _mask(op, added=masked, causal=bool(op.arguments.get("unidirectional")), past=before)
    return attention(query, sizes, mask) + work(query, add=shifted)


@formula("com.microsoft::GroupQueryAttention")
def grouped(op: Op) -> Work | Unknown:
    """Causal attention of many heads of queries to few of keys and values, with a cache; turned by rotary embedding if asked for.

    How many keys there are says `total_sequence_length`; where that is not known, they are those of the past and the new ones.
    """
    query = given(op, "query")
    heads, shared = op.arguments["num_heads"], op.arguments["kv_num_heads"]
    batch, tokens, hidden = query.shape
    packed = not has(op, "key")
    width = hidden // (heads + 2 * shared) if packed else hidden // heads
    total = value(op, "total_sequence_length")
    past = op.arguments.get("past_key")
    if total:
        keys = total[0]
    elif isinstance(past, Array):
        keys = past.shape[2] + tokens
    else:
        keys = tokens
    sizes = Heads(batch, heads, tokens, keys, width, width, shared)
    window = op.arguments.get("local_window_size", -1) or -1
    left = window - 1 if window > 0 else None  # its size, the query's own position included
    found = attention(query, sizes, Mask(has(op, "attention_bias"), left, 0, keys - tokens))
    turned = batch * tokens * (heads + shared) * width if op.arguments.get("do_rotary") else 0
    found += work(query, mul=turned, fma=turned)
    return found + _capped(query, sizes, op.arguments.get("softcap"))
