"""Attention, recurrent layers and small language models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peers.cases import Built, calling, case

LAYERS_OF = "attention and recurrent layers"
HEADS, LENGTH, WIDTH = 12, 64, 64
SDPA = 2 * HEADS * LENGTH * LENGTH * WIDTH


@case("SDPA", LAYERS_OF, SDPA)
def sdpa() -> Built:
    import torch
    from torch.nn import functional

    def attention(q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v)

    return calling(attention), tuple(torch.randn(1, HEADS, LENGTH, WIDTH) for _ in "qkv")


@case("SDPA, causal", LAYERS_OF, SDPA)
def causal() -> Built:
    import torch
    from torch.nn import functional

    def attention(q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return calling(attention), tuple(torch.randn(1, HEADS, LENGTH, WIDTH) for _ in "qkv")


EMBEDDED, TOKENS = 100, 50


@case("MultiheadAttention", LAYERS_OF, 4 * TOKENS * EMBEDDED**2 + 2 * TOKENS**2 * EMBEDDED)
def multihead() -> Built:
    import torch
    from torch import nn

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(EMBEDDED, 1, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
            return seen

    return Attending(), (torch.randn(1, TOKENS, EMBEDDED),)


HIDDEN, FORWARD, SHORT = 64, 128, 10


@case(
    "TransformerEncoderLayer", LAYERS_OF, 4 * SHORT * HIDDEN**2 + 2 * SHORT**2 * HIDDEN + 2 * SHORT * HIDDEN * FORWARD
)
def encoder() -> Built:
    import torch
    from torch import nn

    return nn.TransformerEncoderLayer(HIDDEN, 4, FORWARD, batch_first=True), (torch.randn(1, SHORT, HIDDEN),)


STEPS = 100


def _recurrent(kind: str) -> Callable[[], Built]:
    def build() -> Built:
        import torch
        from torch import nn

        return getattr(nn, kind)(HIDDEN, HIDDEN), (torch.randn(STEPS, 1, HIDDEN),)

    return build


for _kind, _gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    case(_kind, LAYERS_OF, STEPS * _gates * 2 * HIDDEN * HIDDEN)(_recurrent(_kind))


@case("LSTMCell", LAYERS_OF, 3 * 4 * (16 + 8) * 8)
def lstm_cell() -> Built:
    import torch
    from torch import nn

    return nn.LSTMCell(16, 8), (torch.randn(3, 16),)


LANGUAGE = "language models (transformers)"
SEQUENCE, DEPTH, VOCABULARY, INTERMEDIATE = 8, 2, 100, 128
QUERIES, GROUPS, EXPERTS, CHOSEN = 4, 2, 4, 2
ATTENDED = DEPTH * 2 * SEQUENCE * SEQUENCE * HIDDEN
PROJECTED = SEQUENCE * DEPTH * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * HIDDEN * GROUPS // QUERIES)
GATED = SEQUENCE * DEPTH * 3 * HIDDEN * INTERMEDIATE
SCORED = SEQUENCE * HIDDEN * VOCABULARY
LLAMA = PROJECTED + GATED + ATTENDED + SCORED
MIXTRAL = PROJECTED + CHOSEN * GATED + SEQUENCE * DEPTH * HIDDEN * EXPERTS + ATTENDED + SCORED
GPT2 = SEQUENCE * DEPTH * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * INTERMEDIATE) + ATTENDED + SCORED

_SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": QUERIES,
    "num_key_value_heads": GROUPS,
    "vocab_size": VOCABULARY,
}
_GPT2_SIZES = {"n_embd": HIDDEN, "n_inner": INTERMEDIATE, "n_layer": DEPTH, "n_head": QUERIES, "vocab_size": VOCABULARY}


def _language(config: str, sizes: dict[str, int], attention: str, experts: str | None = None) -> Callable[[], Built]:
    def build() -> Built:
        import torch
        import transformers
        from torch import nn

        class Scores(nn.Module):
            """What all counters can take: tokens in, one tensor out."""

            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, tokens: torch.Tensor) -> torch.Tensor:
                scores: torch.Tensor = self.inner(tokens, use_cache=False).logits
                return scores

        made = getattr(transformers, config)(**sizes, attn_implementation=attention)
        model = transformers.AutoModelForCausalLM.from_config(made)
        if experts:
            model.set_experts_implementation(experts)
        return Scores(model), (torch.zeros(1, SEQUENCE, dtype=torch.long),)

    return build


_EXPERTS = {**_SIZES, "num_local_experts": EXPERTS, "num_experts_per_tok": CHOSEN}
case("Llama, sdpa", LANGUAGE, LLAMA)(_language("LlamaConfig", _SIZES, "sdpa"))
case("Llama, eager", LANGUAGE, LLAMA)(_language("LlamaConfig", _SIZES, "eager"))
case("Mixtral, grouped_mm", LANGUAGE, MIXTRAL)(_language("MixtralConfig", _EXPERTS, "sdpa", "grouped_mm"))
case("Mixtral, eager experts", LANGUAGE, MIXTRAL)(_language("MixtralConfig", _EXPERTS, "eager", "eager"))
case("GPT-2, eager", LANGUAGE, GPT2)(_language("GPT2Config", _GPT2_SIZES, "eager"))
