"""Models by a config.json in a local folder: built on meta, fed by their kind, and what is said about wrong ones."""

from __future__ import annotations

import importlib.util
import os

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

from huggingface_hub import constants  # noqa: E402

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.subjects.model import Request, find  # noqa: E402
from tests.unit.subjects.model.configs import (  # noqa: E402
    BERT,
    CLIP,
    GPT2,
    GROUPS,
    LAYERS,
    LLAMA,
    MIXTRAL,
    T5,
    VIT,
    WHISPER,
    WIDTH,
    written,
)

pytestmark = pytest.mark.torch


def shapes(subject):
    """Of all inputs but masks."""
    tensors = {name: value for name, value in subject.kwargs.items() if isinstance(value, torch.Tensor)}
    return {name: tuple(value.shape) for name, value in tensors.items() if not name.endswith("_mask")}


def test_a_language_model_is_built_on_meta_and_fed_tokens(tmp_path):
    subject = find(Request(written(tmp_path, LLAMA), batch=2, sequence=8), empty=True)
    assert type(subject.model) is transformers.LlamaForCausalLM and not subject.model.training
    assert {parameter.device.type for parameter in subject.model.parameters()} == {"meta"}
    assert subject.arguments == () and shapes(subject) == {"input_ids": (2, 8)}
    assert subject.source == "input_ids 2x8:int64" and subject.tokens == 2 * 8


def test_the_file_itself_will_do_and_a_model_for_measuring_has_weights(tmp_path):
    subject = find(Request(written(tmp_path, LLAMA) + "/config.json", sequence=8))
    assert {parameter.device.type for parameter in subject.model.parameters()} == {"cpu"}
    assert subject.model(**subject.kwargs).logits.isfinite().all()


def test_an_input_of_another_shape_takes_the_place_of_the_first(tmp_path):
    subject = find(Request(written(tmp_path, T5), shapes=("3x7:int64", "3x5")), empty=True)
    assert shapes(subject) == {"input_ids": (3, 7), "decoder_input_ids": (3, 5)}
    assert subject.kwargs["decoder_input_ids"].dtype == torch.int64
    only = find(Request(written(tmp_path, T5), shapes=("3x7:int64",), sequence=5), empty=True)
    assert shapes(only) == {"input_ids": (3, 7), "decoder_input_ids": (3, 5)}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (VIT, {"pixel_values": (1, 3, 32, 32)}),
        (BERT, {"input_ids": (1, 32)}),
        (GPT2, {"input_ids": (1, 32)}),
        (T5, {"input_ids": (1, 512), "decoder_input_ids": (1, 512)}),
        (WHISPER, {"input_features": (1, 80, 2 * 50), "decoder_input_ids": (1, 20)}),
        (CLIP, {"input_ids": (1, 12), "pixel_values": (1, 3, 32, 32)}),
    ],
    ids=lambda value: value.get("model_type", ""),
)
def test_each_kind_of_model_is_fed_what_it_is_for(tmp_path, config, expected):
    assert shapes(find(Request(written(tmp_path, config)), empty=True)) == expected


def test_a_config_without_an_architecture_gets_the_one_that_fits(tmp_path):
    for config, name in ((BERT, "BertForMaskedLM"), (LLAMA, "LlamaForCausalLM"), (T5, "T5ForConditionalGeneration")):
        without = {key: value for key, value in config.items() if key != "architectures"}
        assert type(find(Request(written(tmp_path, without)), empty=True).model).__name__ == name


def test_the_datatype_is_the_configs_unless_another_is_asked_for(tmp_path):
    name = written(tmp_path, {**LLAMA, "dtype": "bfloat16"})
    assert find(Request(name), empty=True).dtype == "bf16"
    subject = find(Request(name, dtype="fp16"), empty=True)
    assert subject.dtype == "fp16" and {each.dtype for each in subject.model.parameters()} == {torch.float16}


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL], ids=lambda config: config["model_type"])
def test_decoding_takes_one_token_and_a_cache(tmp_path, config):
    subject = find(Request(written(tmp_path, config), batch=2, sequence=8, phase="decode"), empty=True)
    assert shapes(subject) == {"input_ids": (2, 1)} and subject.tokens == 2
    assert subject.source == "input_ids 2x1:int64 after 8 tokens in a cache"
    numbers = 2 * LAYERS * (2 * GROUPS * 8 * WIDTH)
    assert subject.notes[-1] == f"the cache of 2 x 8 tokens takes {4 * numbers:,} bytes; filling it is not counted"


def test_each_step_of_decoding_begins_with_the_same_cache(tmp_path):
    subject = find(Request(written(tmp_path, LLAMA), sequence=8, phase="decode"))
    with torch.no_grad():
        outputs = [subject.model(**subject.kwargs) for _ in range(2)]
    assert [output["cache"].get_seq_length() for output in outputs] == [8 + 1, 8 + 1]
    assert torch.equal(outputs[0].logits, outputs[1].logits)


def test_a_prefill_is_a_forward_that_fills_a_cache_where_there_is_one(tmp_path):
    llama = find(Request(written(tmp_path, LLAMA), sequence=8, phase="prefill"), empty=True)
    assert llama.source == "input_ids 1x8:int64 (prefill, fills a cache)" and llama.kwargs["use_cache"]
    bert = find(Request(written(tmp_path, BERT), sequence=8, phase="prefill"), empty=True)
    assert bert.source == "input_ids 1x8:int64" and "use_cache" not in bert.kwargs


def test_an_encoder_runs_once_before_its_decoder(tmp_path):
    subject = find(Request(written(tmp_path, T5), shapes=("1x7:int64", "1x5:int64"), phase="decode"), empty=True)
    assert shapes(subject) == {"decoder_input_ids": (1, 1)}
    assert subject.kwargs["encoder_outputs"].last_hidden_state.shape[:2] == (1, 7)
    assert "the encoder ran before and is not counted" in subject.notes


def test_decoding_leaves_a_position_for_the_next_token(tmp_path):
    assert find(Request(written(tmp_path, GPT2), phase="decode"), empty=True).source.endswith(
        "after 31 tokens in a cache"
    )


def test_the_library_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    before = dict(os.environ), constants.HF_HUB_OFFLINE, transformers.utils.logging.get_verbosity()
    find(Request(written(tmp_path, LLAMA), sequence=8), empty=True)
    with pytest.raises(UsageError):
        find(Request(written(tmp_path, {**LLAMA, "num_attention_heads": "many"})), empty=True)
    assert (dict(os.environ), constants.HF_HUB_OFFLINE, transformers.utils.logging.get_verbosity()) == before


def test_a_backbone_is_built_without_the_weights_that_it_asks_for(tmp_path):
    config = {
        "model_type": "detr",
        "architectures": ["DetrForObjectDetection"],
        "use_pretrained_backbone": True,
        "use_timm_backbone": True,
        "backbone": "resnet18",
    }
    assert find(Request(written(tmp_path, config)), empty=True).source == "pixel_values 1x3x224x224"


def test_weights_that_do_not_fit_into_memory_are_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr("flopwatch.subjects.model.huggingface.memory.available", lambda: 300_000)
    name = written(tmp_path, LLAMA)
    find(Request(name, sequence=8), empty=True)
    with pytest.raises(CannotMeasureError, match=r"Its weights take 0\.0 GB of memory, 0\.0 GB are free"):
        find(Request(name, sequence=8))


def test_code_of_a_model_is_not_run(tmp_path):
    theirs = {"AutoModelForCausalLM": "modeling_mine.MineForCausalLM"}
    (tmp_path / "modeling_mine.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UsageError, match=r"code of its own \(modeling_mine.MineForCausalLM\), which is not run"):
        find(Request(written(tmp_path, {**LLAMA, "model_type": "mine", "auto_map": theirs})))
    subject = find(Request(written(tmp_path, {**LLAMA, "auto_map": theirs})), empty=True)
    assert type(subject.model) is transformers.LlamaForCausalLM
    assert any("auto_map" in note for note in subject.notes)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {**LLAMA, "model_type": "lama"},
            rf"unknown model type: 'lama'\. transformers {transformers.__version__} .* Did you mean llama",
        ),
        (
            {**LLAMA, "architectures": ["LlamaForCausalML"]},
            "unknown architecture: 'LlamaForCausalML'.* Did you mean LlamaForCausalLM",
        ),
        ({**LLAMA, "architectures": ["GPT2LMHeadModel"]}, "does not fit together: GPT2LMHeadModel wants a GPT2Config"),
        ({"hidden_size": 64}, "has no model_type"),
        ({**LLAMA, "hidden_size": -1}, "cannot build a model from"),
    ],
)
def test_a_config_that_nobody_can_build(tmp_path, config, said):
    with pytest.raises(UsageError, match=said):
        find(Request(written(tmp_path, config)), empty=True)


def test_a_file_that_is_no_config(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "lla')
    with pytest.raises(UsageError, match="cannot be read as JSON"):
        find(Request(str(tmp_path)))
    (tmp_path / "config.json").write_text("[1, 2]")
    with pytest.raises(UsageError, match="has no model_type"):
        find(Request(str(tmp_path)))


def test_a_folder_without_a_config_and_a_name_at_hugging_face(tmp_path):
    with pytest.raises(UsageError, match=r"has no config\.json"):
        find(Request(str(tmp_path)))
    with pytest.raises(UsageError, match=r"no file or folder 'meta-llama/Llama-3.1-8B'\. Nothing is downloaded"):
        find(Request("meta-llama/Llama-3.1-8B"))


@pytest.mark.parametrize(
    ("config", "options", "said"),
    [
        (VIT, {"sequence": 8}, "takes no tokens"),
        (VIT, {"phase": "decode"}, "has no decode phase"),
        (BERT, {"phase": "decode"}, "has no decode phase"),
        (BERT, {"sequence": 33}, "cannot take 33 tokens. Its table of positions .* has 32 rows"),
        (
            GPT2,
            {"sequence": 32, "phase": "decode"},
            r"cannot take 33 tokens\. Its table of positions \(transformer.wpe\)",
        ),
        (LLAMA, {"sequence": 0}, "cannot have 0 tokens"),
        (LLAMA, {"phase": "both"}, "no phase 'both'"),
        (LLAMA, {"shapes": ("1x8:int64", "1x8:int64")}, "takes 1 inputs, 2 were given"),
        (LLAMA, {"shapes": ("1x3x8",)}, "1x3x8 is no shape for input_ids"),
        (LLAMA, {"image": "skimage:coffee"}, "sees nothing in a picture"),
    ],
)
def test_wishes_that_a_model_cannot_fulfil(tmp_path, config, options, said):
    if "image" in options:
        (tmp_path / "photograph.png").touch()
        options = {"image": str(tmp_path / "photograph.png")}
    with pytest.raises(UsageError, match=said):
        find(Request(written(tmp_path, config), **options), empty=True)


def test_tokens_of_a_named_model_cannot_be_chosen_by_number():
    with pytest.raises(UsageError, match="cannot be chosen by number or phase"):
        find(Request("resnet18", sequence=8))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "flopwatch.subjects.model.huggingface.config.find_spec",
        lambda name: found(name) if name != "transformers" else None,
    )
    with pytest.raises(
        UsageError, match=r"transformers is not installed. Install it: pip install 'flopwatch\[huggingface\]'"
    ):
        find(Request(written(tmp_path, LLAMA)))
