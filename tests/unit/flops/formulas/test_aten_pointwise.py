"""PyTorch's own calls: names of arguments, shapes that are broadcast, datatypes, and forms that must cost the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

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
B, C, H, W = 2, 6, 4, 5  # a batch of images
ROWS, SIZE = 3, 7
N = ROWS * SIZE


def made(function: Callable[..., Any], *arguments: Any, **named: Any) -> Work:
    """All work of a call; it fails if anything is unknown."""
    return total(map(worth, calls(function, *arguments, **named)))


def worth(op: Op) -> Work:
    """The work of a known operator."""
    found = estimate(op)
    assert isinstance(found, Work | Free), op.name
    return found if isinstance(found, Work) else Work()


def images(*, grad: bool = False) -> Any:
    return torch.rand(B, C, H, W, requires_grad=grad)


def table(*, grad: bool = False) -> Any:
    return torch.rand(ROWS, SIZE, requires_grad=grad)


CALLS: list[tuple[Callable[[], Any], Work]] = [
    (lambda: table() + 1, work(FP32, add=N)),
    (lambda: 1 - table(), work(FP32, add=N)),
    (lambda: torch.rsub(table(), 1, alpha=2), work(FP32, fma=N)),
    (lambda: torch.add(table(), table(), alpha=2), work(FP32, fma=N)),
    (lambda: table() * torch.rand(SIZE), work(FP32, mul=N)),
    (lambda: torch.rand(ROWS, 1) * torch.rand(1, SIZE), work(FP32, mul=N)),
    (lambda: torch.rand(SIZE) * table(), work(FP32, mul=N)),
    (lambda: table() / 2, work(FP32, div=N)),
    (lambda: table().reciprocal(), work(FP32, div=N)),
    (lambda: torch.arange(4) / 2, work(FP32, div=4)),
    (lambda: torch.arange(4) * 2, Work()),
    (lambda: torch.arange(4) * 2.0, work(FP32, mul=4)),
    (lambda: table() ** 2, work(FP32, mul=N)),
    (lambda: 2 ** table(), work(FP32, transcendental=N)),
    (lambda: table() ** table(), work(FP32, transcendental=N)),
    (lambda: torch.rsqrt(table()), work(FP32, sqrt=N, div=N)),
    (lambda: table().clamp(0, 1), work(FP32, minmax=2 * N)),
    (lambda: table().clamp(max=1), work(FP32, minmax=N)),
    (lambda: table().clamp_(min=0), work(FP32, minmax=N)),
    (lambda: torch.maximum(table(), table()), work(FP32, minmax=N)),
    (lambda: torch.max(table(), table()), work(FP32, minmax=N)),
    (lambda: torch.lerp(table(), table(), 0.3), work(FP32, add=2 * N, mul=N)),
    (lambda: torch.addcmul(table(), table(), table(), value=0.1), work(FP32, fma=N, mul=N)),
    (lambda: torch.addcdiv(table(), table(), table()), work(FP32, add=N, div=N)),
    (lambda: table() > 0.5, Work()),
    (lambda: torch.where(table() > 0.5, table(), table()), Work()),
    (lambda: -table().abs().floor(), Work()),
    (lambda: torch.isclose(table(), table()), work(FP32, add=2 * N, mul=N)),
    (lambda: torch.allclose(table(), table()), work(FP32, add=2 * N, mul=N)),
    (lambda: torch.complex(table(), table()).abs(), work(FP32, mul=2 * N, add=N, sqrt=N)),
    (lambda: torch.polar(table(), table()), work(FP32, mul=2 * N, transcendental=2 * N)),
    (lambda: torch.hann_window(8), work(FP32, add=8, mul=2 * 8, transcendental=8)),
    (lambda: F.relu(table(), inplace=True), work(FP32, minmax=N)),
    (lambda: F.relu6(table()), work(FP32, minmax=2 * N)),
    (lambda: F.gelu(table()), work(FP32, add=N, mul=3 * N, transcendental=N)),
    (lambda: F.gelu(table(), approximate="tanh"), work(FP32, add=2 * N, mul=6 * N, transcendental=N)),
    (lambda: F.elu(table()), work(FP32, mul=N, transcendental=N)),
    (lambda: F.celu(table(), 2.0), work(FP32, mul=2 * N, transcendental=N)),
    (lambda: F.selu(table()), work(FP32, mul=2 * N, transcendental=N)),
    (lambda: F.softplus(table()), work(FP32, transcendental=2 * N)),
    (lambda: F.softplus(table(), beta=2), work(FP32, transcendental=2 * N, mul=N, div=N)),
    (lambda: F.prelu(images(), torch.rand(C)), work(FP32, mul=B * C * H * W)),
    (lambda: F.glu(torch.rand(ROWS, 2 * SIZE)), work(FP32, add=N, mul=N, div=N, transcendental=N)),
    (lambda: torch.logit(table(), eps=0.1), work(FP32, add=N, div=N, transcendental=N, minmax=2 * N)),
    (lambda: F.dropout(table(), 0.5, training=False), Work()),
    (lambda: F.dropout(table(), 0.5), work(FP32, div=N, mul=N)),
    (lambda: torch.native_dropout(table(), 0.5, True), work(FP32, div=N, mul=N)),
    (lambda: torch.native_dropout(table(), 0.5, False), Work()),
    (lambda: table().sum(), work(FP32, add=N - 1)),
    (lambda: table().sum(1), work(FP32, add=ROWS * (SIZE - 1))),
    (lambda: table().mean(0, keepdim=True), work(FP32, add=SIZE * (ROWS - 1), div=SIZE)),
    (lambda: table().sum(dtype=torch.float64), work(Numbers(DType.FP64), add=N - 1)),
    (lambda: (table() > 1).sum(), Work()),
    (lambda: table().amax((0, 1)), work(FP32, minmax=N - 1)),
    (lambda: table().max(1), work(FP32, minmax=ROWS * (SIZE - 1))),
    (lambda: table().argmax(1), work(FP32, minmax=ROWS * (SIZE - 1))),
    (lambda: torch.aminmax(table()), work(FP32, minmax=2 * (N - 1))),
    (lambda: table().prod(), work(FP32, mul=N - 1)),
    (lambda: table().var(1), work(FP32, add=ROWS * (2 * (SIZE - 1) + SIZE), mul=N, div=2 * ROWS)),
    (
        lambda: torch.std_mean(table(), 1),
        work(FP32, add=ROWS * (2 * (SIZE - 1) + SIZE), mul=N, div=2 * ROWS, sqrt=ROWS),
    ),
    (
        lambda: table().softmax(-1),
        work(FP32, minmax=ROWS * (SIZE - 1), add=ROWS * (2 * SIZE - 1), transcendental=N, div=N),
    ),
    (
        lambda: table().logsumexp(1),
        work(FP32, minmax=ROWS * (SIZE - 1), add=ROWS * 2 * SIZE, transcendental=N + ROWS),
    ),
    (lambda: F.max_pool2d(images(), 2, 2), work(FP32, minmax=B * C * 2 * 2 * (4 - 1))),
    (lambda: F.max_pool2d(images(), 3, 2, 1), work(FP32, minmax=B * C * ((2 + 3) * (2 + 3 + 2) - 2 * 3))),
    (lambda: F.max_pool1d(torch.rand(C, 9), 2, 1, dilation=3), work(FP32, minmax=C * 6)),
    (lambda: F.avg_pool1d(torch.rand(1, 1, 4), 3, 2, 0, True, False), work(FP32, add=3 + 2, div=2)),
    (lambda: F.avg_pool2d(images(), 2), work(FP32, add=B * C * 2 * 2 * 4, div=B * C * 2 * 2)),
    (
        lambda: F.avg_pool2d(images(), 3, 1, 1, count_include_pad=False),
        work(FP32, add=B * C * 10 * 13, div=B * C * H * W),
    ),
    (lambda: F.adaptive_avg_pool2d(images(), 1), work(FP32, add=B * C * (H * W - 1), div=B * C)),
    (lambda: F.adaptive_avg_pool2d(images(), (3, 2)), work(FP32, add=B * C * 6 * 6, div=B * C * 3 * 2)),
    (lambda: F.adaptive_max_pool2d(images(), (3, 2)), work(FP32, minmax=B * C * (6 * 6 - 3 * 2))),
    (lambda: F.fractional_max_pool2d(images(), 2, output_size=2), work(FP32, minmax=B * C * 2 * 2 * (4 - 1))),
    (lambda: F.mse_loss(table(), table()), work(FP32, add=N + N - 1, mul=N, div=1)),
    (lambda: F.l1_loss(table(), table(), reduction="sum"), work(FP32, add=N + N - 1)),
    (lambda: F.huber_loss(table(), table(), reduction="none"), work(FP32, add=2 * N, mul=3 * N)),
    (lambda: F.nll_loss(table(), torch.zeros(ROWS, dtype=torch.int64)), work(FP32, add=ROWS - 1, div=1)),
    (lambda: F.embedding(torch.tensor([0, 2]), table()), Work()),
    (lambda: F.pad(images(), (1, 1, 1, 1), mode="reflect"), Work()),
    (lambda: images().permute(0, 2, 3, 1).reshape(-1, C).contiguous().to(torch.float64).t().chunk(2), Work()),
]


@pytest.mark.parametrize(("function", "expected"), CALLS)
def test_forward(function: Callable[[], Any], expected: Work) -> None:
    assert made(function) == expected


BACKWARD: list[tuple[Callable[[Any], Any], Callable[..., Any], str, Work]] = [
    (F.relu, table, "threshold_backward", Work()),
    (F.hardtanh, table, "hardtanh_backward", Work()),
    (torch.sigmoid, table, "sigmoid_backward", work(FP32, add=N, mul=2 * N)),
    (F.silu, table, "silu_backward", work(FP32, add=3 * N, mul=3 * N, div=N, transcendental=N)),
    (F.gelu, table, "gelu_backward", work(FP32, add=2 * N, mul=7 * N, transcendental=2 * N)),
    (F.mish, table, "mish_backward", work(FP32, add=3 * N, mul=4 * N, div=N, transcendental=4 * N)),
    (F.elu, table, "elu_backward", work(FP32, mul=2 * N, transcendental=N)),
    (F.leaky_relu, table, "leaky_relu_backward", work(FP32, mul=N)),
    (F.softplus, table, "softplus_backward", work(FP32, add=N, mul=N, div=N, transcendental=N)),
    (F.hardswish, table, "hardswish_backward", work(FP32, add=N, mul=N, div=N)),
    (F.glu, lambda grad: torch.rand(ROWS, 2 * SIZE, requires_grad=grad), "glu_backward",
     work(FP32, add=2 * N, mul=3 * N, div=N, transcendental=N)),
    (lambda x: x.softmax(1), table, "_softmax_backward_data", work(FP32, mul=2 * N, add=ROWS * (2 * SIZE - 1))),
    (lambda x: x.log_softmax(1), table, "_log_softmax_backward_data",
     work(FP32, fma=N, add=ROWS * (SIZE - 1), transcendental=N)),
    (lambda x: F.max_pool2d(x, 2), images, "max_pool2d_with_indices_backward", work(FP32, add=B * C * 2 * 2)),
    (lambda x: F.avg_pool2d(x, 2), images, "avg_pool2d_backward", work(FP32, add=B * C * 16, div=B * C * 4)),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), images, "_adaptive_avg_pool2d_backward",
     work(FP32, add=B * C * 36, div=B * C * 6)),
    (lambda x: F.mse_loss(x, table()), table, "mse_loss_backward", work(FP32, add=N, mul=2 * N)),
    (lambda x: F.smooth_l1_loss(x, table()), table, "smooth_l1_loss_backward", work(FP32, add=N, mul=3 * N, div=N)),
    (lambda x: F.huber_loss(x, table()), table, "huber_loss_backward", work(FP32, add=N, mul=3 * N)),
    (lambda x: F.binary_cross_entropy(x, table()), table, "binary_cross_entropy_backward",
     work(FP32, add=2 * N, mul=2 * N, div=2 * N, minmax=N)),
    (lambda x: F.nll_loss(x, torch.zeros(ROWS, dtype=torch.int64)), table, "nll_loss_backward", work(FP32, div=1)),
    (lambda x: F.multi_margin_loss(x, torch.zeros(ROWS, dtype=torch.int64)), table, "multi_margin_loss_backward",
     work(FP32, add=ROWS + 2 * ROWS * (SIZE - 1) - ROWS, mul=ROWS)),
    (lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"), images, "replication_pad2d_backward",
     work(FP32, add=B * C * (H + 2) * (W + 2))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "inputs", "name", "expected"), BACKWARD)
def test_backward(function: Callable[[Any], Any], inputs: Callable[..., Any], name: str, expected: Work) -> None:
    result = function(inputs(grad=True)).sum()
    (found,) = (op for op in calls(result.backward) if op.name == f"aten::{name}")
    assert worth(found) == expected


def test_ctc_whose_lengths_are_data_is_unknown() -> None:
    scores = torch.rand(7, 2, 5).log_softmax(-1)
    labels = torch.ones(2, 3, dtype=torch.int64)
    assert made(F.ctc_loss, scores, labels, [7, 7], [3, 2]).tally.flop()
    with pytest.raises(AssertionError, match="_ctc_loss"):
        made(F.ctc_loss, scores, labels, torch.tensor([7, 7]), torch.tensor([3, 2]))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_dense_layer_with_its_loss_is_both(reduction: str, bias: bool) -> None:
    weight, target = torch.rand(5, SIZE), torch.zeros(ROWS, dtype=torch.int64)
    shift = torch.rand(5) if bias else None
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    whole = made(
        F.linear_cross_entropy, table(), weight, target, linear_bias=shift, reduction=reduction, options=options
    )
    parts = made(lambda: F.cross_entropy(F.linear(table(), weight, shift), target, reduction=reduction))
    assert whole.mac == parts.mac == ROWS * SIZE * 5
    assert whole.tally.flop() == parts.tally.flop()


def test_a_dense_layer_with_its_loss_makes_gradients_on_the_way() -> None:
    weight, target = torch.rand(5, SIZE, requires_grad=True), torch.zeros(ROWS, dtype=torch.int64)
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    assert made(F.linear_cross_entropy, table(), weight, target, options=options).mac == 2 * ROWS * SIZE * 5
    assert made(F.linear_cross_entropy, table(grad=True), weight, target, options=options).mac == 3 * ROWS * SIZE * 5


@given(st.integers(3, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_windows_are_those_of_pytorch(size: int, kernel: int, stride: int, padding: int, ceil: bool) -> None:
    """Sums of ones tell how many elements each window holds."""
    assume(padding <= kernel // 2 and kernel <= size)
    ones = torch.ones(1, 1, size, size + 1)
    held = F.avg_pool2d(ones, kernel, stride, padding, ceil, divisor_override=1)
    assert made(F.avg_pool2d, ones, kernel, stride, padding, ceil) == work(FP32, add=int(held.sum()), div=held.numel())
    highest = work(FP32, minmax=int((held - 1).sum()))
    assert made(F.max_pool2d, ones, kernel, stride, padding, 1, ceil) == highest


def test_the_datatype_is_that_of_the_result() -> None:
    half = torch.rand(4, dtype=torch.bfloat16)
    assert made(lambda: half + half).tally.flop() == {DType.BF16: 4}
    assert made(lambda: half + torch.rand(4)).tally.flop() == {DType.FP32: 4}
    assert made(lambda: half + 1.0).tally.flop() == {DType.BF16: 4}


def test_nothing_is_done_to_no_elements() -> None:
    empty = torch.rand(0, SIZE)
    assert made(lambda: F.gelu(empty * 2).softmax(-1)) == Work()
    assert made(lambda: F.layer_norm(empty, (SIZE,))) == Work()


def test_sizes_do_not_overflow() -> None:
    huge = Array((2**31, 2**31, 2**10))
    found = estimate(Op("aten::add", {"self": huge, "other": huge}, (huge,)))
    assert found == work(FP32, add=2**72)
