"""A model is left as it was found, also when the run raises."""

from __future__ import annotations

import random

import numpy
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from flopwatch.frameworks.torch import untouched  # noqa: E402

pytestmark = pytest.mark.torch


class Counter(nn.Module):
    """Replaces its buffer instead of writing to it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1), persistent=False)

    def forward(self, x):
        self.seen = self.seen + 1
        return x


def network() -> nn.Module:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), Counter(), nn.Dropout(), nn.Linear(4, 2))
    model[1].eval()
    model[0].weight.requires_grad_(False)
    model[4].weight.grad = torch.full((2, 4), 7.0)
    return model


@pytest.mark.parametrize("fails", [False, True])
def test_a_training_step_leaves_no_trace(fails):
    model = network()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    values = {name: tensor.clone() for name, tensor in tensors.items()}
    gradient = model[4].weight.grad
    flags = [module.training for module in model.modules()]
    random_states = random.getstate(), torch.get_rng_state(), numpy.random.get_state()[1].copy()

    def step() -> None:
        with untouched(model, training=True):
            model.train().requires_grad_(True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.randn(5, 3)).sum().backward()
            optimizer.step()
            random.random(), numpy.random.rand()
            assert not torch.equal(model[0].weight, values["0.weight"])
            assert gradient is not model[4].weight.grad
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            step()
    else:
        step()
    after = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    assert list(after) == list(tensors)
    for name, tensor in after.items():
        assert tensor is tensors[name]
        assert torch.equal(tensor, values[name]), name
    assert [module.training for module in model.modules()] == flags
    assert [parameter.requires_grad for parameter in model.parameters()] == [False] + [True] * 5
    assert model[4].weight.grad is gradient and bool((gradient == 7).all())
    assert model[0].weight.grad is None
    assert random.getstate() == random_states[0]
    assert torch.equal(torch.get_rng_state(), random_states[1])
    assert (numpy.random.get_state()[1] == random_states[2]).all()


def test_an_inference_restores_buffers_too():
    model = network()
    seen = model[2].seen
    with untouched(model):
        model.train()
        model(torch.randn(5, 3))
    assert model[2].seen is seen and seen.item() == 0
    assert model[1].num_batches_tracked.item() == 0
