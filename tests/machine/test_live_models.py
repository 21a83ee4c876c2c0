"""Live models under the real engine: closed forms, rows that sum, hooks that cost nothing."""

from __future__ import annotations

import pytest

from flopwatch import counters
from flopwatch.errors import CannotMeasureError

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from flopwatch import model_views  # noqa: E402
from flopwatch.flops.classify import Classified  # noqa: E402
from flopwatch.labelled import Counting  # noqa: E402
from flopwatch.models import measure_subject  # noqa: E402
from flopwatch.subjects.model import ModelSubject  # noqa: E402

try:
    counters.find("instrumented")
except CannotMeasureError as error:
    pytest.skip(f"needs the built engine: {error}", allow_module_level=True)

pytestmark = [pytest.mark.torch, pytest.mark.engine]


def subject(model: nn.Module, *arguments: torch.Tensor) -> ModelSubject:
    return ModelSubject("test", "torch", model, arguments, "made up")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )


def test_a_convolution_is_its_closed_form():
    channels, side = 64, 56
    model = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False))
    measured = measure_subject(subject(model, torch.randn(1, channels, side, side)), Counting())
    fused = sum(key.lanes * count.instructions for key, count in measured.tally.items() if key.operation == "fma")
    # Each output sees three rows and columns, but two at the borders, if the code skips the padding.
    skipped = channels * channels * (3 * side - 2) ** 2
    assert fused in (skipped, channels * channels * (3 * side) ** 2)


def is_product(flop: int, rows: int, inner: int, columns: int) -> bool:
    """Whether that is a matrix product: 2 a term, and up to 2 for each result that BLAS spends on alpha and beta."""
    return 0 <= flop - 2 * rows * inner * columns <= 2 * rows * columns


def test_a_linear_layer_has_twice_its_products():
    rows, inputs, outputs = 64, 96, 128
    model = nn.Sequential(nn.Linear(inputs, outputs, bias=False))
    measured = measure_subject(subject(model, torch.randn(rows, inputs)), Counting())
    (row,) = [row for row in model_views.document(measured)["rows"] if row["measured_flop"]]
    assert row["name"] == "0"
    assert is_product(row["measured"]["fp32"], rows, inputs, outputs)


@pytest.mark.parametrize("train", [False, True])
def test_rows_sum_to_what_is_counted_without_hooks(train):
    from flopwatch.frameworks.torch.running import steps

    made = subject(network(), torch.randn(2, 3, 20, 20))
    with steps(made, train=train) as step:
        step()
        plain = Counting()
        with plain:
            step()
    total = Classified.total(plain.work.values()).tally.flop()
    measured = measure_subject(made, Counting(), train=train)
    assert {str(dtype): flop for dtype, flop in measured.flop().items()} == {
        str(dtype): flop for dtype, flop in total.items()
    }
    for by in model_views.AXES:
        document = model_views.document(measured, by)
        assert sum(row["measured_flop"] for row in document["rows"]) == document["total"]["measured_flop"]


def test_backward_of_a_linear_layer_is_in_its_row():
    rows, inputs, outputs = 64, 96, 128
    model = nn.Sequential(nn.Linear(inputs, outputs, bias=False), nn.Linear(outputs, inputs, bias=False))
    measured = measure_subject(subject(model, torch.randn(rows, inputs)), Counting(), train=True)
    stages = {row["name"]: row["measured_stages"] for row in model_views.document(measured)["rows"]}
    assert is_product(stages["0"]["forward"], rows, inputs, outputs)
    assert is_product(stages["1"]["forward"], rows, outputs, inputs)
    # The first layer needs no gradient of its input.
    assert is_product(stages["0"]["backward"], outputs, rows, inputs)
    extra = stages["1"]["backward"] - 2 * (2 * rows * inputs * outputs)
    assert 0 <= extra <= 2 * (inputs * outputs + rows * outputs)
    assert stages["(outside any module)"]["optimizer"] == 2 * (2 * inputs * outputs)


def test_chainer_counts_all_threads(tmp_path):
    from importlib.util import find_spec

    if find_spec("chainer") is None:
        pytest.skip("needs Chainer")
    import numpy

    import flopwatch
    from flopwatch.frameworks.chainer import load

    chainer = load()
    link = chainer.links.Convolution2D(3, 64, 7, stride=2, pad=3)
    x = numpy.ones((1, 3, 224, 224), numpy.float32)
    with chainer.no_backprop_mode():
        link(x)
        with flopwatch.chainer.CounterHook() as counter:
            link(x)
    ((name, flop),) = counter.call_history
    product, bias = 2 * (3 * 7 * 7) * (64 * 112 * 112), 64 * 112 * 112
    assert name == "Convolution2DFunction"
    # The products, and what the matrix multiplication adds for alpha and beta.
    assert product + bias <= flop <= product + 4 * bias
