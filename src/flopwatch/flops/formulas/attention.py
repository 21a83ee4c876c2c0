"""Scaled dot-product attention, softmax(Q Kᵀ · scale + mask) V, and its gradients, whichever kernel computes them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


class Heads(NamedTuple):
    """The sizes of an attention.

    `heads` are those of the queries, `shared` those of keys and values, each of which serves heads / shared of the first.
    `width` and `value` are the numbers of a head's key and of its value.
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
    def scores(self) -> int:
        """Elements of all score matrices."""
        return self.rows * self.keys


class Mask(NamedTuple):
    """What is added to the scores.

    `added`: a tensor is. `left` and `right`: query i sees the keys from i + shift - left to i + shift + right alone, None for no
    such limit; a causal mask has right = 0. The shift is 0 where the mask begins at the upper left corner, keys - queries where
    it ends at the lower right one.
    """

    added: bool = False
    left: int | None = None
    right: int | None = None
    shift: int = 0

    @property
    def limited(self) -> bool:
        """Whether some keys are not seen because of where they stand."""
        return self.left is not None or self.right is not None


NO_MASK = Mask()
CAUSAL = Mask(right=0)


@lru_cache(maxsize=1024)
def discarded(queries: int, keys: int, mask: Mask) -> int:
    """Scores of one head that the limits of a mask throw away."""
    if not mask.limited or not queries or not keys:
        return 0
    last = queries * keys if mask.right is None else _clamped(queries, mask.shift + mask.right + 1, keys)
    before = 0 if mask.left is None else _clamped(queries, mask.shift - mask.left, keys)
    return queries * keys - max(0, last - before)


def _clamped(count: int, start: int, top: int) -> int:
    """The sum of start + i, not below 0 and not above `top`, for i from 0 to count - 1."""
    first = min(max(0, -start), count)
    full = min(max(first, top - start), count)
    rising = full - first
    return rising * (start + first) + rising * (rising - 1) // 2 + (count - full) * top


def attention(
    numbers: Numbers | Array, sizes: Heads, mask: Mask = NO_MASK, *, dropout: bool = False, scale_keys: bool = True
) -> Work:
    """Attention of `sizes.queries` queries to `sizes.keys` keys (Vaswani et al., Attention is all you need, 2017, eq. 1).

    Two products: queries · keys · width and queries · keys · value MAC for each head, also where heads share keys and values
    (Ainslie et al., GQA, 2023). Queries and keys are each multiplied by the root of the scale, as PyTorch's reference
    composition does it, the keys once for each head; or the queries by the whole scale. A mask, be it a tensor or a causal
    one, is one addition for each score. Softmax over n scores is n - 1 minmax, n subtractions, n exponentials, n - 1 additions
    and n divisions; dropout scales its mask (n divisions) and multiplies by it. No MAC is left out for scores that a causal
    mask or a window throws away; they are avoidable ("causal").
    """
    rows, scores = sizes.rows, sizes.scores
    scaled = (rows + (sizes.batch * sizes.heads * sizes.keys if scale_keys else 0)) * sizes.width
    if not scores:
        return work(numbers, mul=scaled)
    return work(
        numbers,
        mac=scores * (sizes.width + sizes.value),
        causal=_avoidable(sizes, mask),
        mul=scaled + (scores if dropout else 0),
        add=(scores if mask.added or mask.limited else 0) + 2 * scores - rows,
        minmax=scores - rows,
        transcendental=scores,
        div=2 * scores if dropout else scores,
    )


def attention_backward(
    numbers: Numbers | Array,
    sizes: Heads,
    mask: Mask = NO_MASK,
    *,
    query: bool = True,
    key: bool = True,
    value: bool = True,
    mask_elements: int = 0,
    dropout: bool = False,
) -> Work:
    """The gradients of attention that are asked for, from the probabilities P that the forward found.

    dV = Pᵀ dO and dP = dO Vᵀ are queries · keys · value MAC for each head, dQ = dS K and dK = dSᵀ Q queries · keys · width:
    four products. Kernels that did not keep P multiply Q Kᵀ a fifth time (Dao et al., FlashAttention, 2022, algorithm 4);
    that is the kernel's way and not in here, so that all kernels cost the same: `recomputed` tells its size.
    dS = P · (dP - Σ dP · P) is, for a row of n scores, 2 n multiplications, n subtractions and n - 1 additions. Scaling is as
    in the forward. Heads that share keys and values add their gradients up. A mask of fewer elements than there are scores,
    whose gradient is wanted, sums the rest.
    """
    rows, scores = sizes.rows, sizes.scores
    if not scores:
        return Work()
    within = query or key or mask_elements > 0
    pairs = sizes.batch * sizes.heads * sizes.keys
    repeated = sizes.batch * (sizes.heads - sizes.shared) * sizes.keys
    by_value = value + within
    by_width = query + key
    mul = (2 * scores if within else 0) + (rows * sizes.width if query else 0) + (pairs * sizes.width if key else 0)
    add = (2 * scores - rows if within else 0) + (repeated * sizes.width if key else 0)
    add += repeated * sizes.value if value else 0
    add += scores - mask_elements if mask_elements else 0
    kept = discarded(sizes.queries, sizes.keys, mask) * sizes.batch * sizes.heads
    return work(
        numbers,
        mac=scores * (by_value * sizes.value + by_width * sizes.width),
        causal=kept * (by_value * sizes.value + by_width * sizes.width),
        mul=mul + (scores if dropout and within else 0),
        add=add,
    )


def recomputed(sizes: Heads) -> int:
    """MAC that a backward spends to find the scores again, which no formula here counts."""
    return sizes.scores * sizes.width


def _avoidable(sizes: Heads, mask: Mask) -> int:
    if not mask.limited:
        return 0
    return sizes.batch * sizes.heads * discarded(sizes.queries, sizes.keys, mask) * (sizes.width + sizes.value)
