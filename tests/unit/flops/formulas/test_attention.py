"""Attention against loops over numbers that count, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Numbers, Work, estimate, work
from flopwatch.flops.formulas.attention import Heads, Mask, attention, attention_backward, discarded, recomputed
from flopwatch.flops.operations import DType, Operation
from tests.unit.flops.formulas.counting import Counting, accumulated, added, operations, softmax

FP32 = Numbers(DType.FP32)


def worth(name: str, *shapes: tuple[int, ...], **more: Any) -> Work:
    query, key, value = map(Array, shapes)
    found = estimate(Op(name, {"query": query, "key": key, "value": value, **more}, (query,)))
    assert isinstance(found, Work)
    return found


@st.composite
def sizes(draw: st.DrawFn) -> Heads:
    shared = draw(st.integers(1, 2))
    small = st.integers(1, 4)
    return Heads(
        draw(st.integers(0, 2)), shared * draw(small), draw(small), draw(small), draw(small), draw(small), shared
    )


@settings(max_examples=40, deadline=None)
@given(sizes(), st.booleans(), st.booleans())
def test_attention_and_its_gradients_are_what_their_loops_do(of: Heads, masked: bool, causal: bool) -> None:
    seen = Counting()
    backward = Counting()
    group = of.heads // of.shared
    for _ in range(of.batch):
        gathered: dict[Any, Any] = {}
        for head in range(of.heads):
            q = seen.numbers(of.queries, of.width) * 0.5
            k = seen.numbers(of.keys, of.width) * 0.5
            v = seen.numbers(of.keys, of.value)
            d = backward.numbers(of.queries, of.value)
            rows = []
            for i in range(of.queries):
                scores = [accumulated(q[i] * k[j]) for j in range(of.keys)]
                if masked or causal:
                    scores = [score + 0.0 for score in scores]
                rows.append(softmax(scores))
                for column in range(of.value):
                    accumulated(p * x for p, x in zip(rows[i], v[:, column], strict=True))
            # From here on everything is counted apart.
            p = [[backward.number(float(each)) for each in row] for row in rows]
            dv = [
                [accumulated(p[i][j] * d[i, c] for i in range(of.queries)) for c in range(of.value)]
                for j in range(of.keys)
            ]
            ds = []
            for i in range(of.queries):
                dp = [accumulated(d[i, c] * v[j, c].value for c in range(of.value)) for j in range(of.keys)]
                mean = added(one * other for one, other in zip(dp, p[i], strict=True))
                ds.append([(one - mean) * other for one, other in zip(dp, p[i], strict=True)])
            for i in range(of.queries):
                for c in range(of.width):
                    accumulated(ds[i][j] * k[j, c].value for j in range(of.keys)) * 0.5
            dk = [
                [accumulated(ds[i][j] * q[i, c].value for i in range(of.queries)) * 0.5 for c in range(of.width)]
                for j in range(of.keys)
            ]
            for name, made in (("k", dk), ("v", dv)):
                for j, row in enumerate(made):
                    for c, each in enumerate(row):
                        place = (name, head // group, j, c)
                        gathered[place] = gathered[place] + each if place in gathered else each
    mask = Mask(added=masked, right=0 if causal else None)
    found = attention(FP32, of, mask)
    assert operations(found) == +seen.operations
    assert found.mac == of.batch * of.heads * of.queries * of.keys * (of.width + of.value)
    assert operations(attention_backward(FP32, of, mask)) == +backward.operations


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 7),
    st.integers(0, 7),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.integers(-7, 7),
)
def test_what_a_mask_discards(queries: int, keys: int, left: int | None, right: int | None, shift: int) -> None:
    seen = sum(
        (left is None or key >= query + shift - left) and (right is None or key <= query + shift + right)
        for query in range(queries)
        for key in range(keys)
    )
    assert discarded(queries, keys, Mask(left=left, right=right, shift=shift)) == queries * keys - seen


BATCH, HEADS, LENGTH, WIDTH = 1, 12, 64, 64
SQUARE = (BATCH, HEADS, LENGTH, WIDTH)
DENSE = 2 * HEADS * LENGTH * LENGTH * WIDTH


@pytest.mark.parametrize(
    "name",
    [
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_attention_math",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_fused_attention_overrideable",
    ],
)
def test_every_kernel_costs_the_same_and_a_causal_mask_saves_nothing(name: str) -> None:
    full, causal = worth(name, SQUARE, SQUARE, SQUARE), worth(name, SQUARE, SQUARE, SQUARE, is_causal=True)
    assert full == attention(FP32, Heads(BATCH, HEADS, LENGTH, LENGTH, WIDTH, WIDTH, HEADS))
    assert full.mac == causal.mac == DENSE == 6_291_456
    useful = causal.mac - causal.avoidable["causal"]
    assert useful == 2 * HEADS * WIDTH * (LENGTH * (LENGTH + 1) // 2) == 3_194_880


def test_some_kernels_have_the_positions_before_the_heads() -> None:
    length, heads, width = 128, 8, 64
    shape = (1, length, heads, width)
    for name in ("aten::_flash_attention_forward", "aten::_efficient_attention_forward"):
        found = worth(name, shape, shape, shape)
        assert 2 * found.mac == 4 * heads * length**2 * width == 33_554_432


def test_fewer_heads_of_keys_and_another_width_of_values() -> None:
    query, key, value = (2, 8, 5, 16), (2, 2, 7, 16), (2, 2, 7, 4)
    assert worth("aten::scaled_dot_product_attention", query, key, value).mac == 2 * 8 * 5 * 7 * (16 + 4)
    packed = worth(
        "aten::_flash_attention_forward", (10, 8, 16), (14, 2, 16), (14, 2, 4),
        cum_seq_q=Array((3,), "int32"), cum_seq_k=Array((3,), "int32"), max_q=5, max_k=7,
    )  # fmt: skip
    assert packed.mac == 2 * 8 * 5 * 7 * (16 + 4)


def test_gradients_are_four_products_and_what_kernels_multiply_again_is_told_apart() -> None:
    of = Heads(BATCH, HEADS, LENGTH, LENGTH, WIDTH, WIDTH, HEADS)
    gradients = worth("aten::_scaled_dot_product_flash_attention_backward", SQUARE, SQUARE, SQUARE)
    assert (gradients.mac, recomputed(of)) == (2 * DENSE, DENSE // 2)
    wanted = {"grad_input_mask": [False, False, True, False], "attn_bias": None}
    assert (
        worth("aten::_scaled_dot_product_efficient_attention_backward", SQUARE, SQUARE, SQUARE, **wanted).mac
        == DENSE // 2
    )


def test_a_causal_mask_may_end_at_the_lower_right_corner() -> None:
    query, key = (1, 2, 3, 4), (1, 6, 3, 4)
    kinds = {
        kind: worth("aten::_efficient_attention_forward", query, key, key, custom_mask_type=kind) for kind in (1, 2)
    }
    heads, queries, keys, width = 3, 2, 6, 4
    assert kinds[1].avoidable["causal"] == heads * (queries * keys - (1 + 2)) * 2 * width
    assert kinds[2].avoidable["causal"] == heads * (queries * keys - (5 + 6)) * 2 * width


def test_a_window_is_avoidable_too() -> None:
    shape = (1, 5, 1, 2)
    found = worth(
        "aten::_flash_attention_forward", shape, shape, shape, window_size_left=1, window_size_right=0, is_causal=True
    )
    assert found.avoidable["causal"] == (5 * 5 - (1 + 2 + 2 + 2 + 2)) * 2 * 2


def packed(ends: Any, longest: int) -> Work | Unknown:
    query = Array((9, 2, 4))
    given = {"cum_seq_q": ends, "cum_seq_k": ends, "max_q": longest, "max_k": longest}
    found = estimate(
        Op("aten::_flash_attention_forward", {"query": query, "key": query, "value": query, **given}, (query,))
    )
    assert not hasattr(found, "reason")
    return found  # type: ignore[return-value]


def test_packed_sequences_of_known_and_of_unknown_lengths() -> None:
    heads, width = 2, 4
    of_each = packed([0, 2, 9], 7)
    assert isinstance(of_each, Work)
    assert of_each.mac == heads * (2 * 2 + 7 * 7) * 2 * width
    assert packed(Array((4,), "int32"), 3) == packed([0, 3, 6, 9], 3)
    assert packed(Array((3,), "int32"), 7) == Unknown("aten::_flash_attention_forward (lengths of packed sequences)")


def test_nothing_to_attend_to() -> None:
    assert worth("aten::scaled_dot_product_attention", (1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4)).mac == 0
    assert worth("aten::scaled_dot_product_attention", (1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)) == work(
        FP32, mul=2 * 3 * 4
    )


EMBEDDED, POSITIONS = 100, 50


def native(name: str, batch: int, positions: int, width: int, heads: int, **more: Any) -> Work:
    one = Array((batch, positions, width))
    given = {
        "query": one,
        "key": one,
        "value": one,
        "src": one,
        "embed_dim": width,
        "num_head": heads,
        "num_heads": heads,
    }
    found = estimate(Op(name, given | more, (one,)))
    assert isinstance(found, Work)
    return found


def test_multi_head_attention_as_one_operator() -> None:
    found = native("aten::_native_multi_head_attention", 1, POSITIONS, EMBEDDED, 4, need_weights=False)
    assert found.mac == 4 * POSITIONS * EMBEDDED**2 + 2 * POSITIONS**2 * EMBEDDED == 2_500_000
    biases = 4 * POSITIONS * EMBEDDED
    assert found.tally[
        next(key for key in found.tally if key.operation is Operation.ADD)
    ].instructions == biases + 4 * (2 * POSITIONS**2 - POSITIONS)


def test_an_encoder_layer_as_one_operator() -> None:
    width, heads, hidden, length = 64, 4, 128, 10
    found = native(
        "aten::_transformer_encoder_layer_fwd",
        1,
        length,
        width,
        heads,
        use_gelu=False,
        ffn_weight_1=Array((hidden, width)),
    )
    assert found.mac == 4 * length * width**2 + 2 * length**2 * width + 2 * length * width * hidden == 340_480
