"""Scaled dot-product attention: softmax(Q Kᵀ · scale + mask) V, whichever kernel computes it."""

from __future__ import annotations

from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


class Heads(NamedTuple):
    """The sizes of an attention: `heads` and `shared` are the heads of the queries and those of keys and values.

    `width` and `value` are the dimensions of a head of the keys and of the values. `score_scaled` … see `attention`.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value: int
    shared: int

    @property
    def rows(self) -> int:
        """Rows of the score matrices: one for each query of each head."""
        return self.batch * self.heads * self.queries

    @property
    def mac(self) -> int:
        """Multiply-accumulates of both products, dense."""
        return self.rows * self.keys * (self.width + self.value)

    @property
    def discarded(self) -> int:
        """Scores of one head and batch item that a causal mask throws away: those of keys after the query.

        The mask begins at the upper left corner (query 0 sees key 0 alone), whatever the two lengths.
        """
        kept = min(self.queries, self.keys)
        seen = kept * (kept + 1) // 2 + max(0, self.queries - self.keys) * self.keys
        return self.queries * self.keys - seen


def attention(numbers: Numbers | Array, sizes: Heads, *, masked: bool = False, causal: bool = False) -> Work:
    """Attention of `sizes.queries` queries to `sizes.keys` keys (Vaswani et al., Attention is all you need, 2017, eq. 1).

    Two products: queries · keys · width and queries · keys · value MAC for each head, also where heads share keys and values.
    Scaling multiplies queries and keys by the root of the scale, as PyTorch's reference composition does. A mask, a causal
    one too, is one addition for each score. Softmax over n scores: n - 1 minmax, n subtractions, n exponentials, n - 1
    additions, n divisions. `causal` says that MAC with masked scores are avoidable; none is left out.
    """
    rows, keys = sizes.rows, sizes.keys
    scores = rows * keys
    mac = sizes.mac
    return work(
        numbers,
        mac=mac,
        causal=sizes.batch * sizes.heads * sizes.discarded * (sizes.width + sizes.value) if causal else 0,
        mul=(rows + sizes.batch * sizes.heads * keys) * sizes.width,
        add=(scores if masked or causal else 0) + 2 * scores - (rows if keys else 0),
        minmax=scores - rows if keys else 0,
        transcendental=scores,
        div=scores,
    )
