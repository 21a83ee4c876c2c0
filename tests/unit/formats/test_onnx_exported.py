"""Models that PyTorch exports, that onnxruntime quantises and optimises: the products stay what they were."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch", reason="needs PyTorch")
# ruff: noqa: E402  # what follows needs both

from flopwatch.errors import UsageError
from flopwatch.flops.operations import DType
from tests.unit.formats.onnx_models import seen, unknown_of, work_of

pytestmark = pytest.mark.torch


def export(path: Path, module: torch.nn.Module, *inputs: torch.Tensor, dynamo: bool = False, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, str(path), dynamo=dynamo, verbose=False, **options)
    return path


class First(torch.nn.Module):
    """Only the first output of a recurrent network."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)[0]


class SelfAttention(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(("kind", "mac"), [("RNN", 819_200), ("GRU", 2_457_600), ("LSTM", 3_276_800)])
def test_recurrent_networks(tmp_path, kind, mac):
    network = First(getattr(torch.nn, kind)(64, 64))
    path = export(tmp_path / "m.onnx", network, torch.zeros(100, 1, 64))
    assert work_of(path).mac == mac


def test_attention_with_open_sizes(tmp_path):
    width, tokens, batch = 100, 50, 3
    axes = {"x": {0: "batch", 1: "sequence"}}
    example = torch.zeros(1, tokens, width)
    path = export(tmp_path / "m.onnx", SelfAttention(width, 10), example, input_names=["x"], dynamic_axes=axes)
    found = work_of(path, dims={"batch": batch, "sequence": tokens})
    assert found.mac == batch * (4 * tokens * width**2 + 2 * tokens**2 * width)
    # The exporter has written down how many keys it saw: the file cannot be run with another length, and is not counted.
    with pytest.raises(UsageError, match=r"Reshape .* cannot take its inputs: 60x3x100, 3. It would give 50x30x10"):
        seen(path, dims={"batch": batch, "sequence": 60})


def test_a_script_with_a_loop_and_a_branch(tmp_path):
    class Script(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x
            for _ in range(x.size(0)):
                if bool(y.sum() > 0):
                    y = self.linear(y)
                else:
                    y = self.linear(self.linear(y))
            return y

    # torch.jit.script reads the class from this file.
    path = export(tmp_path / "m.onnx", torch.jit.script(Script()), torch.zeros(5, 8))
    assert work_of(path).mac == 5 * 2 * (5 * 8 * 8)
    assert "the larger branch (else) is counted" in seen(path)[1].notes[0]


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    torchvision = pytest.importorskip("torchvision")
    path = tmp_path_factory.mktemp("resnet") / "m.onnx"
    axes = {"x": {0: "batch"}}
    return export(
        path, torchvision.models.resnet18(), torch.zeros(1, 3, 224, 224), input_names=["x"], dynamic_axes=axes
    )


def test_resnet(resnet):
    assert work_of(resnet, batch=8).mac == 8 * 1_814_073_344


def test_resnet_with_quantized_weights(resnet, tmp_path):
    quantization = pytest.importorskip("onnxruntime.quantization")
    quantization.quantize_dynamic(str(resnet), str(tmp_path / "q.onnx"))
    found = work_of(tmp_path / "q.onnx", batch=1)
    assert found.mac == 1_814_073_344
    # Products of integers are OP: two for each.
    assert found.tally.op() == {DType.INT8: 2 * 1_814_073_344}


@pytest.mark.slow
@pytest.mark.parametrize("dynamo", [False, True])
def test_vision_transformer(tmp_path, dynamo):
    torchvision = pytest.importorskip("torchvision")
    path = export(tmp_path / "m.onnx", torchvision.models.vit_b_16(), torch.zeros(1, 3, 224, 224), dynamo=dynamo)
    assert work_of(path).mac == 17_563_828_224
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    assert work_of(tmp_path / "fused.onnx").mac == 17_563_828_224
    assert unknown_of(tmp_path / "fused.onnx") == []


@pytest.mark.slow
def test_a_language_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    hidden, inner, layers, vocabulary, tokens, shared = 64, 128, 2, 100, 8, 2 / 4
    config = transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=vocabulary,
    )

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = transformers.LlamaForCausalLM(config)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=tokens, use_cache=False).logits

    example = torch.ones(1, tokens, dtype=torch.long)
    path = export(tmp_path / "m.onnx", Logits(), example, dynamo=True, opset_version=23)
    projections = tokens * hidden * (2 * hidden + 2 * int(hidden * shared) + 3 * inner)
    scores = 2 * tokens**2 * hidden
    assert work_of(path).mac == layers * (projections + scores) + tokens * hidden * vocabulary == 657_408
