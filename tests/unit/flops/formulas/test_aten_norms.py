"""All forms of a normalisation cost the same, and all forms of a call: in inference mode it is seen before it is taken apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, estimate, work
from flopwatch.flops.formulas.work import Numbers, total
from flopwatch.flops.operations import DType

torch = pytest.importorskip("torch", reason="needs PyTorch")
F = torch.nn.functional

from tests.unit.flops.formulas.calls import calls  # noqa: E402  # it needs PyTorch

pytestmark = pytest.mark.torch

FP32 = Numbers(DType.FP32)
B, C, H, W = 2, 6, 4, 5
N = B * C * H * W
ROWS, SIZE = 3, 7
X = Array((B, C, H, W))
CHANNELS = Array((C,))
NOBODY = Array((0,))


def worth(op: Op) -> Work:
    found = estimate(op)
    assert isinstance(found, Work | Free), op.name
    return found if isinstance(found, Work) else Work()


def made(function: Callable[..., Any], *arguments: Any, **named: Any) -> Work:
    return total(map(worth, calls(function, *arguments, **named)))


def flop(found: Work) -> dict[DType, int]:
    return found.tally.flop()


def images() -> Any:
    return torch.rand(B, C, H, W)


def batch_norm(*, training: bool, affine: bool = True) -> Work:
    """What batch normalisation of `images` takes, by hand."""
    given = work(FP32, add=C, sqrt=C, div=C, mul=C, fma=N + (C if affine else 0))
    statistics = work(FP32, add=2 * (N - C) + N, mul=N, div=2 * C)
    running = work(FP32, mul=2 * C, fma=2 * C, div=C)
    return given + statistics + running if training else given


BATCH_NORMS = [
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "batch_norm",
    "_batch_norm_impl_index",
    "cudnn_batch_norm",
    "miopen_batch_norm",
]


def call(name: str, **arguments: Any) -> Op:
    given = {"input": X, "weight": CHANNELS, "bias": CHANNELS, "running_mean": CHANNELS, "running_var": CHANNELS}
    return Op(f"aten::{name}", given | arguments, (X, CHANNELS, CHANNELS))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", BATCH_NORMS)
def test_batch_norms_agree(name: str, training: bool) -> None:
    assert worth(call(name, training=training)) == batch_norm(training=training)


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("_batch_norm_with_update", True),
        ("_batch_norm_with_update_functional", True),
        ("_native_batch_norm_legit_no_training", False),
        ("_batch_norm_no_update", False),
    ],
)
def test_batch_norms_without_a_flag_agree(name: str, training: bool) -> None:
    assert worth(call(name)) == batch_norm(training=training)


def test_batch_norm_in_pieces_agrees() -> None:
    statistics = worth(Op("aten::batch_norm_stats", {"input": X, "eps": 1e-5}, (CHANNELS, CHANNELS)))
    given = {"input": X, "weight": CHANNELS, "bias": CHANNELS, "mean": CHANNELS, "invstd": CHANNELS}
    applied = worth(Op("aten::batch_norm_elemt", given, (X,)))
    assert statistics + applied == worth(call("native_batch_norm", training=True, running_mean=None, running_var=None))


def test_batch_norm_as_pytorch_calls_it() -> None:
    mean, variance, weight, bias = torch.zeros(C), torch.ones(C), torch.ones(C), torch.zeros(C)
    trained = made(F.batch_norm, images(), mean, variance, weight, bias, training=True)
    assert trained == batch_norm(training=True)
    assert made(F.batch_norm, images(), mean, variance, weight, bias) == batch_norm(training=False)
    assert made(F.batch_norm, images(), mean, variance) == batch_norm(training=False, affine=False)


@pytest.mark.parametrize("mask", [(True, True, True), (False, True, True), (True, False, False)])
def test_batch_norm_backwards_agree(mask: tuple[bool, bool, bool]) -> None:
    outputs = tuple(array if asked else None for array, asked in zip((X, CHANNELS, CHANNELS), mask, strict=True))
    given = {"input": X, "grad_out": X, "grad_output": X, "weight": CHANNELS}
    native = {**given, "train": True, "output_mask": list(mask)}
    expected = worth(Op("aten::native_batch_norm_backward", native, outputs))
    # One name has a mask and no flag that is called train, the other has neither.
    assert (
        worth(Op("aten::batch_norm_backward", {**given, "update": True, "output_mask": list(mask)}, outputs))
        == expected
    )
    assert worth(Op("aten::cudnn_batch_norm_backward", given, outputs)) == expected


def test_batch_norm_backward_in_pieces_agrees() -> None:
    given = {"input": X, "grad_out": X, "mean": CHANNELS, "invstd": CHANNELS, "weight": CHANNELS}
    masks = {"input_g": True, "weight_g": True, "bias_g": True}
    sums = worth(Op("aten::batch_norm_backward_reduce", given | masks, (CHANNELS,) * 4))
    applied = worth(Op("aten::batch_norm_backward_elemt", given, (X,)))
    whole = {"input": X, "grad_out": X, "weight": CHANNELS, "train": True, "output_mask": [True] * 3}
    again = work(FP32, add=N)  # the differences from the mean, made in both pieces
    assert sums + applied == worth(Op("aten::native_batch_norm_backward", whole, (X, CHANNELS, CHANNELS))) + again


def test_layer_norm_and_its_gradient() -> None:
    x = torch.rand(ROWS, SIZE, requires_grad=True)
    weight, bias = torch.rand(SIZE, requires_grad=True), torch.rand(SIZE, requires_grad=True)
    elements = ROWS * SIZE
    assert made(F.layer_norm, x, (SIZE,), weight, bias) == work(
        FP32,
        add=ROWS * ((SIZE - 1) + SIZE + (SIZE - 1) + 1),
        mul=2 * elements,
        fma=elements,
        div=3 * ROWS,
        sqrt=ROWS,
    )
    result = F.layer_norm(x, (SIZE,), weight, bias).sum()
    (backward,) = (op for op in calls(result.backward) if op.name == "aten::native_layer_norm_backward")
    normal = work(FP32, add=elements, mul=elements)
    of_weight = work(FP32, mul=elements, add=elements - SIZE)
    of_bias = work(FP32, add=elements - SIZE)
    of_input = work(FP32, mul=3 * elements, add=2 * (elements - ROWS) + elements, fma=elements, div=2 * ROWS)
    assert worth(backward) == normal + of_weight + of_bias + of_input


def test_group_norm_is_a_layer_norm_of_groups() -> None:
    groups = 3
    found = made(F.group_norm, images(), groups)
    assert found == made(F.layer_norm, torch.rand(B * groups, N // (B * groups)), (N // (B * groups),))
    x = images().requires_grad_()
    result = F.group_norm(x, groups, torch.ones(C, requires_grad=True), torch.ones(C, requires_grad=True)).sum()
    (backward,) = (op for op in calls(result.backward) if op.name == "aten::native_group_norm_backward")
    assert flop(worth(backward))


def test_rms_norm_is_its_parts() -> None:
    x, weight = torch.rand(ROWS, SIZE), torch.rand(SIZE)

    def by_hand() -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    fused = Op(
        "aten::_fused_rms_norm",
        {"input": Array((ROWS, SIZE)), "normalized_shape": [SIZE], "weight": Array((SIZE,))},
        (Array((ROWS, SIZE)), Array((ROWS, 1))),
    )
    assert made(by_hand) == worth(fused) == made(F.rms_norm, x, (SIZE,), weight, 1e-6)


def test_cross_entropy_is_log_softmax_and_a_selection() -> None:
    scores, classes = torch.rand(ROWS, SIZE), torch.zeros(ROWS, dtype=torch.int64)
    assert made(F.cross_entropy, scores, classes) == made(lambda: F.nll_loss(scores.log_softmax(1), classes))


CALLS: list[Callable[[], Any]] = [
    lambda: F.batch_norm(images(), torch.zeros(C), torch.ones(C)),
    lambda: F.batch_norm(images(), torch.zeros(C), torch.ones(C), training=True),
    lambda: F.batch_norm(images(), None, None, training=True),
    lambda: F.instance_norm(images()),
    lambda: F.instance_norm(images(), torch.zeros(C), torch.ones(C)),
    lambda: F.instance_norm(images(), torch.zeros(C), torch.ones(C), use_input_stats=False),
    lambda: F.instance_norm(images(), weight=torch.ones(C), bias=torch.ones(C)),
    lambda: F.layer_norm(images(), (H, W)),
    lambda: F.group_norm(images(), 2),
    lambda: F.rms_norm(images(), (W,)),
    lambda: F.local_response_norm(images(), 3),
    lambda: F.max_pool1d(torch.rand(C, 9), 3, 2, 1),
    lambda: F.max_pool2d(images(), 3, 2, 1),
    lambda: F.max_pool2d(images(), 3, 2, 1, ceil_mode=True),
    lambda: F.max_pool3d(images(), 2),
    lambda: F.avg_pool1d(torch.rand(C, 9), 3),
    lambda: F.adaptive_avg_pool1d(torch.rand(C, 9), 4),
    lambda: F.adaptive_avg_pool2d(images(), 1),
    lambda: F.adaptive_avg_pool2d(images(), (3, 2)),
    lambda: F.adaptive_avg_pool3d(images(), 1),
    lambda: F.adaptive_max_pool1d(torch.rand(C, 9), 4),
    lambda: F.lp_pool2d(images(), 2, 3),
    lambda: F.prelu(images(), torch.rand(C)),
    lambda: F.rrelu(images()),
    lambda: F.rrelu(images(), training=True),
    lambda: F.selu(images()),
    lambda: F.relu6(images()),
    lambda: F.logsigmoid(images()),
    lambda: F.softsign(images()),
    lambda: F.tanhshrink(images()),
    lambda: F.dropout(images(), 0.5, True),
    lambda: F.dropout2d(images(), 0.5, True),
    lambda: images().softmax(1),
    lambda: images().log_softmax(-1, dtype=torch.float64),
    lambda: F.l1_loss(images(), images()),
    lambda: F.kl_div(images(), images()),
    lambda: F.kl_div(images(), images(), log_target=True, reduction="sum"),
    lambda: F.nll_loss(images(), torch.zeros(B, H, W, dtype=torch.int64)),
    lambda: images().std(1),
    lambda: torch.var_mean(images(), (0, 2)),
    lambda: images().nanmean(),
    lambda: torch.isclose(images(), images()),
    lambda: torch.square(images()),
    lambda: torch.float_power(images(), 2),
    lambda: torch.special.expit(images()) + torch.special.ndtr(images()),
    lambda: torch.divide(torch.multiply(images(), 2), torch.subtract(images(), 2)),
    lambda: F.pad(images(), (1, 1, 1, 1), mode="circular"),
]


@pytest.mark.parametrize("function", CALLS)
def test_what_is_seen_whole_costs_what_its_parts_do(function: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensors with names are called a prototype
        with torch.no_grad():
            parts = made(function)
        with torch.inference_mode():
            whole = made(function)
    assert flop(whole) == flop(parts)
