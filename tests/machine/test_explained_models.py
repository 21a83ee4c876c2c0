"""Live models under the real engine: the gap between estimate and measurement has named causes."""

from __future__ import annotations

import pytest

from flopwatch import counters
from flopwatch.errors import CannotMeasureError

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from flopwatch.estimating import estimate_subject  # noqa: E402
from flopwatch.explaining import Explanation, explain  # noqa: E402
from flopwatch.labelled import Counting  # noqa: E402
from flopwatch.models import measure_subject  # noqa: E402
from flopwatch.subjects.model import ModelSubject  # noqa: E402

try:
    counters.find("instrumented")
except CannotMeasureError as error:
    pytest.skip(f"needs the built engine: {error}", allow_module_level=True)

pytestmark = [pytest.mark.torch, pytest.mark.engine]

LEAST = 0.98
CHANNELS, SIDE = 64, 28


def explained(model: nn.Module, *arguments: torch.Tensor, train: bool = False) -> Explanation:
    subject = ModelSubject("test", "torch", model, arguments, "made up")
    found = explain(measure_subject(subject, Counting(), train=train), estimate_subject(subject, train=train))
    assert sum(row.flop for row in found.rows) + found.unexplained == found.gap
    return found


def images() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.SiLU(),
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(CHANNELS, 10),
    )


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(CHANNELS, 4, batch_first=True)
        self.norm = nn.LayerNorm(CHANNELS)
        self.inner, self.outer = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


def test_an_image_network() -> None:
    found = explained(images(), torch.rand(1, 3, SIDE, SIDE))
    assert found.share >= LEAST
    assert {"polynomials of functions", "accumulators in lanes"} <= {row.cause for row in found.rows}


def test_a_training_step_of_it() -> None:
    assert explained(images(), torch.rand(2, 3, SIDE, SIDE), train=True).share >= LEAST


def test_an_attention_block_on_its_fused_path() -> None:
    found = explained(Sequences(), torch.rand(2, 50, CHANNELS))
    assert found.share >= LEAST
    gelu = next(part for part in found.parts if part.place.op == "aten::gelu")
    assert [each.cause for each in gelu.found if each.cause == "polynomials of functions"]
