"""What a factory may return beside its model, and models that are built without weights."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from flopwatch import estimate_model  # noqa: E402
from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.subjects.model import ModelRaisedError, Request, find  # noqa: E402

pytestmark = pytest.mark.torch

FACTORIES = """
import torch
from torch import nn

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)
    def forward(self, x, scale=None, *, twice=False):
        y = self.layer(x)
        return self.layer(y[..., :3]) if twice else y

class Taking(Named):
    def forward(self, table):
        return self.layer(table["x"])

class Anything(Named):
    def forward(self, x, **options):
        return super().forward(x, **options)

x = torch.ones(2, 3)
def positional(): return Named(), x
def named(): return Named(), {"x": x, "twice": True}
def mixed(): return Named(), x, {"twice": True}
def explicit(): return Named(), (x,), {"twice": True}
def table(): return Taking(), {"x": x}
def explicit_table(): return Taking(), ({"x": x},), {}
def anything(): return Anything(), x, {"twice": True}
def refusing(): return Named(), torch.ones(2, 4)
"""

ONCE = 2 * 3 * 5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "factories_of_calls.py"
    path.write_text(FACTORIES)
    return path


@pytest.mark.parametrize(
    ("factory", "layers"),
    [
        ("positional", 1),
        ("named", 2),
        ("mixed", 2),
        ("explicit", 2),
        ("table", 1),
        ("explicit_table", 1),
        ("anything", 2),
    ],
)
def test_a_dict_at_the_end_holds_keyword_arguments_if_the_model_takes_them(
    file: Path, factory: str, layers: int
) -> None:
    record = estimate_model(Request(f"{file}:{factory}"))
    assert record.mac == layers * ONCE


def test_what_the_users_model_raises_is_shown_as_theirs(file: Path) -> None:
    with pytest.raises(ModelRaisedError) as raised:
        estimate_model(Request(f"{file}:refusing"))
    assert "shapes cannot be multiplied (2x4 and 3x5)" in str(raised.value)
    assert "flopwatch/frameworks" not in str(raised.value)


def test_models_without_weights_take_no_memory_and_leave_random_numbers_alone() -> None:
    pytest.importorskip("torchvision")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    subject = find(Request("resnet18"), empty=True)
    assert {tensor.device.type for tensor in (*subject.model.parameters(), *subject.arguments)} == {"meta"}
    assert torch.equal(torch.get_rng_state(), before)
    real = subject.real()
    assert {tensor.device.type for tensor in (*real.model.parameters(), *real.arguments)} == {"cpu"}


def test_a_model_that_computes_while_it_is_built_has_weights() -> None:
    pytest.importorskip("torchvision")
    subject = find(Request("regnet_y_400mf"), empty=True)
    assert {tensor.device.type for tensor in subject.model.parameters()} == {"cpu"}
    assert subject.real() is subject


def test_shapes_without_elements_and_shapes_that_are_too_large() -> None:
    pytest.importorskip("torchvision")
    assert estimate_model(Request("resnet18", shapes=("0x3x224x224",))).mac == 0
    huge = 10**12
    assert estimate_model(Request("alexnet", shapes=(f"{huge}x3x224x224",))).mac == huge * 714_188_480
    with pytest.raises(UsageError, match=r"cannot run on|There can be no input of"):
        estimate_model(Request("alexnet", shapes=("1000000000000x3x1000000x1000000",)))
    with pytest.raises(UsageError, match="cannot run on 1x3x5x5"):
        estimate_model(Request("alexnet", shapes=("1x3x5x5",)))
