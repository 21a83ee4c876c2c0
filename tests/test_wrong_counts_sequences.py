"""Estimates of attention and recurrent networks in all their shapes, forward and in training, in all ways."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from flopwatch import estimate  # noqa: E402
from flopwatch.frameworks import BACKWARD, FORWARD  # noqa: E402
from tests.following import WAYS, followed, forwards, function, mac, macs  # noqa: E402

pytestmark = pytest.mark.torch

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 4, 6, 10, 8
SCORES = BATCH * HEADS * QUERIES * KEYS


def numbers(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes)


def heads(*, keys: int = HEADS, values: int = WIDTH) -> list[torch.Tensor]:
    return [
        numbers(BATCH, HEADS, QUERIES, WIDTH).requires_grad_(),
        numbers(BATCH, keys, KEYS, WIDTH).requires_grad_(),
        numbers(BATCH, keys, KEYS, values).requires_grad_(),
    ]


MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "causal": {"is_causal": True},
    "booleans": {"attn_mask": torch.ones(QUERIES, KEYS, dtype=torch.bool)},
    "booleans for each head": {"attn_mask": torch.ones(BATCH, HEADS, QUERIES, KEYS, dtype=torch.bool)},
    "numbers": {"attn_mask": torch.zeros(BATCH, 1, QUERIES, KEYS)},
    "a scale": {"scale": 0.5},
    "dropout": {"dropout_p": 0.5},
}


@pytest.mark.parametrize("case", MASKS)
def test_attention_in_training_is_three_times_the_forward(case: str) -> None:
    def step(*x: torch.Tensor) -> None:
        functional.scaled_dot_product_attention(*x, **MASKS[case]).sum().backward()

    forward = 2 * SCORES * WIDTH
    assert macs(estimate(step, *heads()), "function") == {FORWARD: forward, BACKWARD: 2 * forward}
    assert {way: followed(way, step, *heads())[0] for way in WAYS} == dict.fromkeys(WAYS, 3 * forward)


def test_attention_with_fewer_heads_and_other_widths() -> None:
    def grouped(*x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(*x, enable_gqa=True)

    assert mac(grouped, *heads(keys=2)) == 2 * SCORES * WIDTH
    assert mac(functional.scaled_dot_product_attention, *heads(values=3)) == SCORES * (WIDTH + 3)
    assert mac(functional.scaled_dot_product_attention, *(each[0, 0] for each in heads())) == 2 * QUERIES * KEYS * WIDTH


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_flexible_attention_with_masks_and_scores() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    tokens, width = 128, 16
    products = 2 * tokens * tokens * width
    query, fewer = numbers(1, 4, tokens, width), numbers(1, 2, tokens, width)

    def masked(q: torch.Tensor) -> Any:
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, tokens, tokens, device=q.device)
        return flex_attention(q, q, q, block_mask=mask)

    assert mac(masked, query) == 4 * products
    assert mac(lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + i - j), query) == 4 * products
    assert mac(lambda q, k: flex_attention(q, k, k, enable_gqa=True), query, fewer) == 4 * products


TOKENS, EMBEDDED = 5, 16
PROJECTION = BATCH * TOKENS * EMBEDDED * EMBEDDED
PRODUCTS = BATCH * TOKENS * EMBEDDED
CAUSAL = nn.Transformer.generate_square_subsequent_mask(TOKENS)

MULTI_HEAD: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "weights": ({}, {}, TOKENS),
    "weights of each head": ({}, {"average_attn_weights": False}, TOKENS),
    "causal": ({}, {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False}, TOKENS),
    "padded": ({}, {"key_padding_mask": torch.zeros(BATCH, TOKENS, dtype=torch.bool)}, TOKENS),
    "another key and value": ({"add_bias_kv": True}, {}, TOKENS + 1),
    "a key of zeros": ({"add_zero_attn": True}, {"need_weights": False}, TOKENS + 1),
    "without biases": ({"bias": False}, {"need_weights": False}, TOKENS),
}


@pytest.mark.parametrize("case", MULTI_HEAD)
def test_multi_head_attention_with_all_options(case: str) -> None:
    made, called, keys = MULTI_HEAD[case]
    layer = nn.MultiheadAttention(EMBEDDED, HEADS, batch_first=True, **made)

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = layer

        def forward(self, x: torch.Tensor) -> Any:
            return self.attention(x, x, x, **called)

    expected = 4 * PROJECTION + 2 * PRODUCTS * keys
    assert {name: found for name, found, _ in forwards(Around(), numbers(BATCH, TOKENS, EMBEDDED))} == dict.fromkeys(
        [*WAYS, *(f"{way}, {mode}" for way in WAYS for mode in ("gradients", "no_grad", "inference_mode"))], expected
    )


def test_multi_head_attention_across() -> None:
    others, key, value = 7, 12, 10
    layer = nn.MultiheadAttention(EMBEDDED, HEADS, kdim=key, vdim=value, batch_first=True)
    arguments = numbers(BATCH, TOKENS, EMBEDDED), numbers(BATCH, others, key), numbers(BATCH, others, value)
    assert mac(layer, *arguments) == (
        2 * PROJECTION + BATCH * others * (key + value) * EMBEDDED + 2 * PRODUCTS * others
    )


def encoder_layer(tokens: int = TOKENS) -> int:
    return BATCH * tokens * (4 * EMBEDDED * EMBEDDED + 2 * tokens * EMBEDDED + 2 * EMBEDDED * 32)


PADDED = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("given", [{}, {"mask": CAUSAL, "is_causal": True}, {"src_key_padding_mask": PADDED}], ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_encoders_work_on_padding_too(nested: bool, given: dict[str, Any]) -> None:
    layer = nn.TransformerEncoderLayer(EMBEDDED, HEADS, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).eval()
    x = numbers(BATCH, TOKENS, EMBEDDED)
    assert mac(model, x, **given) == 2 * encoder_layer()
    assert followed("real", model, x, **given)[0] == 2 * encoder_layer()


def test_a_whole_transformer() -> None:
    source, target = numbers(BATCH, 7, EMBEDDED), numbers(BATCH, TOKENS, EMBEDDED)
    # A decoder layer attends to itself, then to the source, whose keys and values it projects once more.
    decoder_layer = encoder_layer() + 2 * PROJECTION + BATCH * 2 * 7 * EMBEDDED**2 + 2 * PRODUCTS * 7
    model = nn.Transformer(EMBEDDED, HEADS, 2, 3, 32, batch_first=True)
    assert mac(model, source, target, tgt_mask=CAUSAL, tgt_is_causal=True) == 2 * encoder_layer(7) + 3 * decoder_layer


# --- recurrent networks

INPUTS, HIDDEN, STEPS, GATES = 6, 8, 5, {"RNN": 1, "GRU": 3, "LSTM": 4}
ROWS = 3


def cells(kind: str, inputs: int = INPUTS, state: int = HIDDEN) -> int:
    """MAC of one cell: all gates see the input and the state."""
    return GATES[kind] * HIDDEN * (inputs + state)


@pytest.mark.parametrize("kind", GATES)
def test_recurrent_layers_on_sequences_of_several_lengths(kind: str) -> None:
    layer = getattr(nn, kind)(INPUTS, HIDDEN, bidirectional=True)
    lengths = [5, 3, 2]
    packed = pack_padded_sequence(numbers(STEPS, ROWS, INPUTS), lengths)
    assert mac(layer, packed) == 2 * sum(lengths) * cells(kind)

    class Packing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = getattr(nn, kind)(INPUTS, HIDDEN, batch_first=True)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            padded: torch.Tensor = pad_packed_sequence(self.inner(packed)[0], batch_first=True)[0]
            return padded

    lengths = [2, 5, 3]
    assert mac(Packing(), numbers(ROWS, STEPS, INPUTS), torch.tensor(lengths)) == sum(lengths) * cells(kind)


@pytest.mark.parametrize("kind", GATES)
def test_recurrent_layers_in_training_find_only_gradients_that_are_wanted(kind: str) -> None:
    layer = getattr(nn, kind)(INPUTS, HIDDEN)
    x = numbers(STEPS, ROWS, INPUTS)
    forward = STEPS * ROWS * cells(kind)
    # By all weights, and by all states but the first.
    backward = forward + (STEPS - 1) * ROWS * GATES[kind] * HIDDEN * HIDDEN
    assert {way: followed(way, layer, x, train=True)[0] for way in WAYS} == dict.fromkeys(WAYS, forward + backward)
    assert estimate(layer, x, train=True).mac == forward + backward

    def step(x: torch.Tensor) -> None:
        layer(x)[0].sum().backward()

    record = estimate(step, x)
    assert (record.mac, record.tally) == (forward + backward, followed("real", step, x)[1])
    layer.requires_grad_(False)
    assert estimate(layer, x, train=True).mac == forward


def test_projected_layers_in_both_directions() -> None:
    projected = 3
    layer = nn.LSTM(INPUTS, HIDDEN, 2, proj_size=projected, bidirectional=True)
    first = cells("LSTM", INPUTS, projected) + HIDDEN * projected
    second = cells("LSTM", 2 * projected, projected) + HIDDEN * projected
    assert mac(layer, numbers(STEPS, ROWS, INPUTS)) == STEPS * ROWS * 2 * (first + second)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16], ids=str)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_recurrent_layers_with_quantised_weights(kind: str, dtype: Any) -> None:
    layer = getattr(nn, kind)(INPUTS, HIDDEN, 2, bidirectional=True)
    model = torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {type(layer)}, dtype=dtype)
    expected = STEPS * ROWS * 2 * (cells(kind) + cells(kind, 2 * HIDDEN))
    assert mac(model, numbers(STEPS, ROWS, INPUTS)) == expected


@pytest.mark.parametrize("kind", GATES)
def test_cells_in_a_loop_are_layers(kind: str) -> None:
    cell = getattr(nn, f"{kind}Cell")(INPUTS, HIDDEN)

    def loop(x: torch.Tensor) -> Any:
        state = None
        for step in x:
            state = cell(step, state)
        return state

    assert mac(function(loop), numbers(STEPS, ROWS, INPUTS)) == STEPS * ROWS * cells(kind)
