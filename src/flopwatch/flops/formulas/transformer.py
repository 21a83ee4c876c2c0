"""Multi-head attention and encoder layers that are one operator: the sum of the parts that they are made of."""

from __future__ import annotations

from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.attention import Heads, Mask, attention
from flopwatch.flops.formulas.epilogue import unary
from flopwatch.flops.formulas.norms import layer_norm
from flopwatch.flops.formulas.products import linear
from flopwatch.flops.formulas.work import Numbers, Work, total, work


class Layer(NamedTuple):
    """Sizes of multi-head attention: so many queries and keys of `width` numbers each, shared out between the heads."""

    batch: int
    queries: int
    keys: int
    width: int
    heads: int


def multi_head(
    numbers: Numbers | Array,
    layer: Layer,
    *,
    bias: bool = True,
    masked: bool = False,
    weights: bool = False,
    mean: bool = True,
) -> Work:
    """Projections of queries, keys and values, attention, projection of the result (Vaswani et al., 2017, section 3.2.2).

    With E = width: queries · E² + 2 · keys · E² + queries · E² MAC for the projections, 2 · queries · keys · E for attention.
    Where the `weights` are wanted too, the queries alone are scaled, as torch.nn.MultiheadAttention does then, and the mean of
    the weights over the heads is heads - 1 additions and a division for each.
    """
    batch, queries, keys, width, heads = layer
    sizes = Heads(batch, heads, queries, keys, width // heads, width // heads, heads)
    parts = [
        linear(numbers, batch * queries, width, width, bias=bias),
        2 * linear(numbers, batch * keys, width, width, bias=bias),
        attention(numbers, sizes, Mask(added=masked), scale_keys=not weights),
        linear(numbers, batch * queries, width, width, bias=bias),
    ]
    made = total(parts)
    if not weights or not mean:
        return made
    scores = batch * queries * keys
    return made + work(numbers, add=(heads - 1) * scores, div=scores)


def encoder_layer(
    numbers: Numbers | Array,
    layer: Layer,
    hidden: int,
    *,
    activation: str = "relu",
    masked: bool = False,
) -> Work:
    """Attention and two linear layers, each with a sum with what went in and a layer norm (Vaswani et al., 2017, section 3.1).

    The norms may come before or after, which is the same work. MAC besides attention: 2 · positions · width · hidden.
    """
    positions = layer.batch * layer.queries
    size = positions * layer.width
    between = unary(numbers, activation, positions * hidden)
    assert between is not None, activation
    return total(
        (
            multi_head(numbers, layer, masked=masked),
            linear(numbers, positions, layer.width, hidden, bias=True),
            between,
            linear(numbers, positions, hidden, layer.width, bias=True),
            work(numbers, add=2 * size),
            2 * layer_norm(numbers, size, positions),
        )
    )
