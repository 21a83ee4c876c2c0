"""Estimates of language models by their config.json against closed forms in named sizes: prefill, decode, experts, encoders."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers", reason="needs transformers")

from flopwatch.estimating import estimate_model
from flopwatch.subjects.model import Request
from tests.unit.subjects.model.configs import (
    BERT,
    CHOSEN,
    CLIP,
    EXPERTS,
    GPT2,
    GROUPS,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    LLAMA,
    MIXTRAL,
    T5,
    VIT,
    VOCABULARY,
    WHISPER,
    WIDTH,
    written,
)

pytestmark = pytest.mark.torch

S = 8
# For each token and layer. Queries and outputs have all heads, keys and values those of their groups.
PROJECTIONS = 2 * HIDDEN * (HEADS * WIDTH) + 2 * HIDDEN * (GROUPS * WIDTH)
WHOLE_PROJECTIONS = 4 * HIDDEN * HIDDEN
GATED = 3 * HIDDEN * INTERMEDIATE
PLAIN = 2 * HIDDEN * INTERMEDIATE
# Once for each token that is scored; looking up a token's vector is no work.
HEAD = HIDDEN * VOCABULARY


def attention(queries: int, keys: int) -> int:
    """Of all layers: each query with each key, and its weights with each value."""
    return LAYERS * 2 * (queries * keys * HEADS * WIDTH)


def estimate(folder, config, **options):
    record = estimate_model(Request(written(folder, config), **options))
    assert record.unknown == ()
    return record


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_prefill_of_llama(tmp_path, implementation):
    record = estimate(tmp_path, {**LLAMA, "attn_implementation": implementation}, sequence=S)
    assert record.mac == S * (LAYERS * (PROJECTIONS + GATED) + HEAD) + attention(S, S) == 657_408


def test_attention_grows_with_the_square_of_the_sequence(tmp_path):
    once, twice = (estimate(tmp_path, LLAMA, sequence=tokens).mac for tokens in (S, 2 * S))
    by_token = S * (LAYERS * (PROJECTIONS + GATED) + HEAD)
    assert twice - 2 * by_token == 4 * (once - by_token) == 4 * attention(S, S)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_decoding_with_llama(tmp_path, implementation, batch):
    config = {**LLAMA, "attn_implementation": implementation}
    record = estimate(tmp_path, config, sequence=S, batch=batch, phase="decode")
    assert record.mac == batch * (LAYERS * (PROJECTIONS + GATED) + HEAD + attention(1, S + 1))


def test_decoding_all_tokens_comes_to_one_prefill_without_its_upper_half(tmp_path):
    """What is left out is what a causal mask throws away: each token with those after it."""
    first = estimate(tmp_path, LLAMA, sequence=1).mac
    steps = [estimate(tmp_path, LLAMA, sequence=seen, phase="decode").mac for seen in range(1, S)]
    prefill = estimate(tmp_path, LLAMA, sequence=S).mac
    assert first + sum(steps) == prefill - attention(1, S * (S - 1) // 2)


def test_what_a_causal_mask_throws_away_is_told(tmp_path):
    record = estimate(tmp_path, LLAMA, sequence=S)
    assert sum(cell.causal for cell in record.cells) == attention(1, S * (S - 1) // 2)


def test_notes_say_what_a_token_takes(tmp_path):
    prefill = estimate(tmp_path, LLAMA, sequence=S)
    flop = sum(prefill.flop().values())
    assert prefill.notes[-1] == f"per token: {657_408 // S:,} MAC, {flop / S:,.0f} FLOP (of {S} in all)"
    assert any(f"{(S - 1) * HEAD:,} MAC less" in note for note in prefill.notes)
    decode = estimate(tmp_path, LLAMA, sequence=S, phase="decode")
    assert decode.notes[-1].startswith(f"per token: {decode.mac:,} MAC, ")


def test_experts_are_counted_as_often_as_they_are_chosen(tmp_path):
    by_token = LAYERS * (PROJECTIONS + CHOSEN * GATED + HIDDEN * EXPERTS) + HEAD
    assert estimate(tmp_path, MIXTRAL, sequence=S).mac == S * by_token + attention(S, S) == 1_054_720
    assert estimate(tmp_path, MIXTRAL, sequence=S, phase="decode").mac == by_token + attention(1, S + 1)


def test_gpt2(tmp_path):
    by_token = LAYERS * (WHOLE_PROJECTIONS + PLAIN) + HEAD
    assert estimate(tmp_path, GPT2, sequence=S).mac == S * by_token + attention(S, S) == 591_872
    assert estimate(tmp_path, GPT2, sequence=S, phase="decode").mac == by_token + attention(1, S + 1)


def test_bert_scores_each_token_after_one_more_dense_layer(tmp_path):
    by_token = LAYERS * (WHOLE_PROJECTIONS + PLAIN) + HIDDEN * HIDDEN + HEAD
    assert estimate(tmp_path, BERT, sequence=S, batch=2).mac == 2 * (S * by_token + attention(S, S))


def test_vit_scores_its_first_token_only(tmp_path):
    patches = (32 // 16) ** 2
    tokens, classes = patches + 1, 2
    record = estimate(tmp_path, VIT)
    embedding = patches * HIDDEN * (3 * 16 * 16)
    by_token = LAYERS * (WHOLE_PROJECTIONS + PLAIN)
    assert record.mac == embedding + tokens * by_token + attention(tokens, tokens) + HIDDEN * classes


def test_an_encoder_with_its_decoder(tmp_path):
    read, wrote = 7, 5
    record = estimate(tmp_path, T5, shapes=(f"1x{read}:int64", f"1x{wrote}:int64"))
    encoder = read * LAYERS * (WHOLE_PROJECTIONS + PLAIN) + attention(read, read)
    # Across, queries and outputs are of what is written, keys and values of what was read.
    across = LAYERS * (wrote * 2 * HIDDEN * HIDDEN + read * 2 * HIDDEN * HIDDEN) + attention(wrote, read)
    decoder = wrote * (LAYERS * (WHOLE_PROJECTIONS + PLAIN) + HEAD) + attention(wrote, wrote)
    assert record.mac == encoder + decoder + across


def test_decoding_behind_an_encoder_leaves_it_out_with_its_keys_and_values(tmp_path):
    read, wrote = 7, 5
    record = estimate(tmp_path, T5, shapes=(f"1x{read}:int64", f"1x{wrote}:int64"), phase="decode")
    across = LAYERS * 2 * HIDDEN * HIDDEN + attention(1, read)
    assert record.mac == LAYERS * (WHOLE_PROJECTIONS + PLAIN) + HEAD + attention(1, wrote + 1) + across


def test_whisper_hears_a_window_of_fixed_length(tmp_path):
    bins, places, wrote, kernel = 80, 50, 5, 3
    record = estimate(tmp_path, WHISPER, sequence=wrote)
    # The second convolution has a stride of two.
    heard = 2 * places * HIDDEN * bins * kernel + places * HIDDEN * HIDDEN * kernel
    encoder = heard + places * LAYERS * (WHOLE_PROJECTIONS + PLAIN) + attention(places, places)
    across = LAYERS * (wrote + places) * 2 * HIDDEN * HIDDEN + attention(wrote, places)
    decoder = wrote * (LAYERS * (WHOLE_PROJECTIONS + PLAIN) + HEAD) + attention(wrote, wrote)
    assert record.mac == encoder + across + decoder


def test_clip_compares_a_picture_with_words(tmp_path):
    words, patches, projected = 12, (32 // 16) ** 2, 512
    seen = patches + 1
    text = words * LAYERS * (WHOLE_PROJECTIONS + PLAIN) + attention(words, words)
    picture = patches * HIDDEN * (3 * 16 * 16) + seen * LAYERS * (WHOLE_PROJECTIONS + PLAIN) + attention(seen, seen)
    assert estimate(tmp_path, CLIP).mac == text + picture + 2 * HIDDEN * projected + projected


def test_tied_weights_are_one_parameter_and_two_uses(tmp_path):
    tied = estimate(tmp_path, {**LLAMA, "tie_word_embeddings": True}, sequence=S)
    own = estimate(tmp_path, LLAMA, sequence=S)
    assert own.params - tied.params == VOCABULARY * HIDDEN
    assert own.mac == tied.mac
