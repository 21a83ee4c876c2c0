"""Small Hugging Face configs, with the sizes that tests work out their figures from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HIDDEN, INTERMEDIATE, LAYERS, VOCABULARY = 64, 128, 2, 100
HEADS, GROUPS = 4, 2
WIDTH = HIDDEN // HEADS
EXPERTS, CHOSEN = 4, 2

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "vocab_size": VOCABULARY,
}
MIXTRAL: dict[str, Any] = {
    **LLAMA,
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": EXPERTS,
    "num_experts_per_tok": CHOSEN,
}
GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": HIDDEN,
    "n_inner": INTERMEDIATE,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_positions": 32,
    "vocab_size": VOCABULARY,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
VIT: dict[str, Any] = {
    "model_type": "vit",
    "architectures": ["ViTForImageClassification"],
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "image_size": 32,
    "patch_size": 16,
}
BERT: dict[str, Any] = {
    "model_type": "bert",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
}
T5: dict[str, Any] = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": HIDDEN,
    "d_kv": WIDTH,
    "d_ff": INTERMEDIATE,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "vocab_size": VOCABULARY,
}
WHISPER: dict[str, Any] = {
    "model_type": "whisper",
    "architectures": ["WhisperForConditionalGeneration"],
    "d_model": HIDDEN,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": INTERMEDIATE,
    "decoder_ffn_dim": INTERMEDIATE,
    "vocab_size": VOCABULARY,
    "num_mel_bins": 80,
    "max_source_positions": 50,
    "max_target_positions": 20,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "decoder_start_token_id": 1,
}
CLIP: dict[str, Any] = {
    "model_type": "clip",
    "architectures": ["CLIPModel"],
    "text_config": {
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 12,
        "bos_token_id": 0,
        "eos_token_id": 1,
    },
    "vision_config": {
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "image_size": 32,
        "patch_size": 16,
    },
}


def written(folder: Path, config: dict[str, Any]) -> str:
    """A folder that holds this config.json."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)
