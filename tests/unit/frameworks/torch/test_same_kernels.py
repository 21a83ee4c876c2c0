"""What PyTorch runs under hooks is what it runs without: the same operators, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from flopwatch.frameworks.torch import TorchHooks  # noqa: E402
from flopwatch.scope import Scopes  # noqa: E402

pytestmark = pytest.mark.torch


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 8, num_layers=2, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(5, 8, 3), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 14, 3)
    )


MODELS = {"convolutions": convolutions, "attention": Attention, "encoder": encoder, "recurrent": Recurrent}


def infer(model: nn.Module, x: Any) -> list[Any]:
    with torch.inference_mode():
        return [model(x)]


def train(model: nn.Module, x: Any) -> list[Any]:
    model.zero_grad(set_to_none=True)
    output = model(x)
    output.square().mean().backward()
    return [output.detach(), *(parameter.grad.clone() for parameter in model.parameters())]


def profiled(step: Callable[[], list[Any]]) -> tuple[list[str], list[Any]]:
    with profile(activities=[ProfilerActivity.CPU]) as run:
        results = step()
    return [event.name for event in sorted(run.events(), key=lambda event: event.id)], results


def hooked(model: nn.Module, step: Callable[[], list[Any]], *, observe: bool = True) -> list[Any]:
    with TorchHooks(model, Scopes(lambda label: None), observe=observe):
        return step()


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_operators_and_the_same_bits(name, mode):
    torch.manual_seed(0)
    model = MODELS[name]()
    run = infer if mode == "eval" else train
    model.train(mode == "train")
    x = torch.randn(2, 5, 16)

    def step() -> list[Any]:
        return run(model, x)

    step()
    plain, expected = profiled(step)
    names, results = profiled(lambda: hooked(model, step))
    probe = ["aten::empty"]  # the first thing under hooks: are the observers what we take them for?
    assert names[:1] == probe and names[1:] == plain
    assert all(torch.equal(one, other) for one, other in zip(results, expected, strict=True))


@pytest.mark.parametrize("name", ["attention", "encoder"])
def test_the_fused_paths_are_taken(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    x = torch.randn(2, 5, 16)
    names, _ = profiled(lambda: hooked(model, lambda: infer(model, x)))
    assert {"aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd"} & set(names)


class TestCompiled:
    """torch.compile: nothing is compiled again, nor otherwise, and the compiled part is one layer."""

    def compiled(self, backend: Any = "eager") -> nn.Module:
        torch._dynamo.reset()
        self.graphs = 0

        def count(graph, inputs):
            self.graphs += 1
            return graph.forward

        return torch.compile(convolutions().eval(), backend=count)

    def test_a_warm_one_is_not_compiled_again(self):
        model = self.compiled()
        x = torch.randn(2, 5, 16)
        expected = infer(model, x)
        assert self.graphs == 1
        seen = []
        scopes = Scopes(lambda label: seen.append(scopes.scope(label).layer))
        with TorchHooks(model, scopes) as hooks:
            results = infer(model, x)
        infer(model, x)
        assert self.graphs == 1
        assert torch.equal(results[0], expected[0])
        assert "(model)" in seen and "runs as one piece" in hooks.notes[0]
        assert hooks.parts[0].kind == "Sequential"

    def test_one_compiled_under_hooks_is_whole(self):
        model = self.compiled()
        x = torch.randn(2, 5, 16)
        result = hooked(model, lambda: infer(model, x))
        assert self.graphs == 1
        assert torch.equal(result[0], infer(model, x)[0])  # compiled once more: its guards had seen our wrappers
        assert self.graphs == 2

    def test_a_compiled_part_of_a_model(self):
        part = self.compiled()
        model = nn.Sequential(nn.Identity(), part, nn.Linear(3, 3))
        x = torch.randn(2, 5, 16)
        infer(model, x)
        with TorchHooks(model, Scopes(lambda label: None)) as hooks:
            infer(model, x)
        assert list(hooks.layers.modules) == ["(model)", "0", "1", "2"]
        assert self.graphs == 1

    def test_compiled_in_place(self):
        model = convolutions().eval()
        torch._dynamo.reset()
        model.compile(backend="eager")
        x = torch.randn(2, 5, 16)
        expected = infer(model, x)
        before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        assert torch.equal(hooked(model, lambda: infer(model, x))[0], expected[0])
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before


def test_a_scripted_model_is_one_layer():
    model = torch.jit.script(convolutions().eval())
    x = torch.randn(2, 5, 16)
    expected = infer(model, x)
    seen = []
    scopes = Scopes(lambda label: seen.append(scopes.scope(label)))
    with TorchHooks(model, scopes):
        assert torch.equal(infer(model, x)[0], expected[0])
    assert {scope.layer for scope in seen if scope.op.startswith("aten::conv")} == {"(model)"}
