"""Estimates of known models, to the last multiply-accumulate."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
torchvision = pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch import estimate, estimate_model  # noqa: E402
from flopwatch.subjects.model import Request  # noqa: E402
from tests.following import MODES, followed  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::FutureWarning")]

# MAC of convolutions and matrix products for one input of the usual size, and parameters. In giga-MAC these are the "_ops" that
# torchvision states for its weights, which has three decimals of them.
MODELS = {
    "alexnet": (714_188_480, 61_100_840),
    "vgg16": (15_470_264_320, 138_357_544),
    "inception_v3": (5_713_216_096, 27_161_264),
    "resnet18": (1_814_073_344, 11_689_512),
    "resnet34": (3_663_761_408, 21_797_672),
    "resnet50": (4_089_184_256, 25_557_032),
    "resnet101": (7_801_405_440, 44_549_160),
    "resnet152": (11_513_626_624, 60_192_808),
    "resnext50_32x4d": (4_230_479_872, 25_028_904),
    "densenet121": (2_834_161_664, 7_978_856),
    "squeezenet1_0": (818_924_576, 1_248_424),
    "squeezenet1_1": (349_151_936, 1_235_496),
    "mobilenet_v2": (300_774_272, 3_504_872),
    "mobilenet_v3_large": (216_589_760, 5_483_032),
    "mnasnet1_0": (314_415_872, 4_383_312),
    "shufflenet_v2_x1_0": (144_907_992, 2_278_604),
    "efficientnet_b0": (385_814_752, 5_288_548),
    "regnet_y_400mf": (401_842_848, 4_344_144),
    "convnext_tiny": (4_455_531_264, 28_589_128),
    "vit_b_16": (17_563_828_224, 86_567_656),
    "vit_b_32": (4_409_186_304, 88_224_232),
    "vit_l_16": (61_554_712_576, 304_326_632),
    "swin_t": (4_490_566_656, 28_288_354),
    "swin_v2_t": (5_939_690_496, 28_351_570),
    "maxvit_t": (5_558_046_720, 30_919_624),
    "r3d_18": (40_696_553_472, 33_371_472),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_torchvision(name: str) -> None:
    mac, params = MODELS[name]
    record = estimate(name)
    assert (record.mac, record.params, record.unknown) == (mac, params, ())
    assert "on meta tensors: nothing was computed" in record.notes[0]


def test_googlenet_has_two_more_classifiers_that_only_training_runs() -> None:
    record = estimate("googlenet")
    assert record.mac == 1_498_376_192
    auxiliary = sum(layer.params for layer in record.layers if layer.name.startswith("aux"))
    assert record.params - auxiliary == 6_624_904


def test_swin_v2_at_another_size_than_it_was_trained_for() -> None:
    assert estimate_model(Request("swin_v2_t", shapes=("1x3x224x224",))).mac == 4_938_464_256


def test_a_batch_costs_as_often_as_it_is_large() -> None:
    assert estimate_model(Request("resnet18", batch=7)).mac == 7 * 1_814_073_344


def test_halves_cost_as_many_operations_of_another_datatype() -> None:
    full, half = estimate("resnet18"), estimate_model(Request("resnet18", dtype="bf16"))
    assert half.mac == full.mac
    assert list(half.flop().values()) == list(full.flop().values())
    assert [str(dtype) for dtype in half.flop()] == ["bf16"]


def test_parameters_and_buffers_are_weighed() -> None:
    record = estimate("resnet18")
    assert record.memory is not None
    assert record.memory.parameters == 4 * 11_689_512 == sum(layer.bytes for layer in record.layers)
    # Two running statistics of each channel that is normalised, and a counter for each of the 20 layers that do.
    assert record.memory.buffers == 2 * 4 * (64 * 5 + 128 * 5 + 256 * 5 + 512 * 5) + 8 * 20


def test_a_training_step_is_forward_and_two_backward_but_for_the_picture() -> None:
    first = 112 * 112 * 64 * 3 * 7 * 7  # nobody asks for the gradient of the picture
    assert estimate("resnet50", train=True).mac == 3 * 4_089_184_256 - first


@pytest.mark.parametrize("way", ["meta", "fake"])
@pytest.mark.parametrize("training", [False, True])
def test_a_vision_transformer_costs_the_same_in_every_mode(way: str, training: bool) -> None:
    model = torchvision.models.vit_b_16().train(training)
    for entered in MODES.values():

        def call(x: torch.Tensor, entered: Any = entered) -> Any:
            with entered():
                return model(x)

        assert followed(way, call, torch.ones(1, 3, 224, 224))[0] == 17_563_828_224


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"])
def test_a_real_run_agrees_to_the_operation(name: str) -> None:
    model, picture = torchvision.models.get_model(name), torch.ones(1, 3, 64, 64)
    for train in (False, True):
        assert followed("real", model, picture, train=train) == followed("meta", model, picture, train=train)


# Transformers, tiny: 8 tokens of 64 numbers in 2 layers of 4 heads, inner width 128, 100 words.
TOKENS, WIDTH, INNER, LAYERS, WORDS, EXPERTS, CHOSEN = 8, 64, 128, 2, 100, 4, 2
SIZES = {
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": WORDS,
}
# Queries and output are as wide as tokens, keys and values half as wide.
PROJECTIONS = TOKENS * WIDTH * (WIDTH + WIDTH // 2 + WIDTH // 2 + WIDTH)
SCORES = 2 * TOKENS * TOKENS * WIDTH
HEAD = TOKENS * WIDTH * WORDS


def tokens() -> torch.Tensor:
    return torch.arange(TOKENS)[None]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_tiny_llama(attention: str, masked: bool) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, attn_implementation=attention))
    options = {"attention_mask": (tokens() > 2).long()} if masked else {}
    expected = LAYERS * (PROJECTIONS + SCORES + 3 * TOKENS * WIDTH * INNER) + HEAD
    assert expected == 657_408
    record = estimate(model, input_ids=tokens(), **options)
    assert (record.mac, record.unknown) == (expected, ())
    assert "on meta tensors" in record.notes[0]
    trained = estimate(model, input_ids=tokens(), labels=tokens(), train=True)
    assert (trained.mac, trained.unknown) == (3 * expected, ())
    model.gradient_checkpointing_enable()
    # All of the layers again, but for their last product each, which backward does not need.
    again = LAYERS * (PROJECTIONS + SCORES + 2 * TOKENS * WIDTH * INNER)
    assert estimate(model, input_ids=tokens(), labels=tokens(), train=True).mac == 3 * expected + again


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tiny_mixtral(experts: str, dtype: torch.dtype) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.MixtralConfig(**SIZES, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN)
    config._experts_implementation = experts
    model = transformers.MixtralForCausalLM(config).to(dtype)
    router = TOKENS * WIDTH * EXPERTS
    expected = LAYERS * (PROJECTIONS + SCORES + router + CHOSEN * 3 * TOKENS * WIDTH * INNER) + HEAD
    assert expected == 1_054_720
    record = estimate(model, input_ids=tokens())
    assert (record.mac, record.unknown) == (expected, ())


def test_a_tiny_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": WIDTH, "n_inner": INNER, "n_layer": LAYERS, "n_head": 4, "vocab_size": WORDS, "n_positions": 32}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
    expected = LAYERS * (4 * TOKENS * WIDTH * WIDTH + SCORES + 2 * TOKENS * WIDTH * INNER) + HEAD
    assert expected == 591_872
    record = estimate(model, input_ids=tokens())
    assert (record.mac, record.unknown) == (expected, ())
