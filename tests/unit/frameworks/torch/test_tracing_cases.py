"""Programs that counters of others get wrong, kind by kind, each in all ways and modes to the same operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from flopwatch import estimate  # noqa: E402
from flopwatch.frameworks import BACKWARD, FORWARD  # noqa: E402
from tests.following import followed, forwards, function, mac, macs, without_dropout  # noqa: E402

pytestmark = pytest.mark.torch

BATCH, STEPS = 2, 100
HEADS, TOKENS, WIDTH = 12, 64, 64


def numbers(*sizes: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype)


def attend(**options: Any) -> Callable[..., Any]:
    return lambda query, key, value: functional.scaled_dot_product_attention(query, key, value, **options)


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.attention(x, x, x, **self.options)[0]
        return output


class SubclassedConv(nn.Conv2d):
    pass


class Borrowed(nn.Module):
    """A convolution with a weight that is nobody's layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(8, 3, 3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, self.weight, padding=1)


# Sizes: batch x channels x height x width. A convolution costs output positions x taps x channels in (of a group) x channels out.
CONVOLUTIONS = {
    "1d": (lambda: nn.Conv1d(3, 8, 3, padding=1), (1, 3, 10), 10 * 3 * 3 * 8),
    "2d": (lambda: nn.Conv2d(3, 8, 3, padding=1), (1, 3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "3d": (lambda: nn.Conv3d(2, 4, 3, padding=1), (1, 2, 4, 5, 6), 4 * 5 * 6 * 27 * 2 * 4),
    "strided": (lambda: nn.Conv2d(3, 64, 7, stride=2, padding=3), (1, 3, 224, 224), 112 * 112 * 49 * 3 * 64),
    "dilated": (lambda: nn.Conv2d(3, 8, 3, dilation=2), (1, 3, 8, 8), 4 * 4 * 9 * 3 * 8),
    "grouped": (lambda: nn.Conv2d(8, 12, 3, padding=1, groups=4), (1, 8, 8, 8), 8 * 8 * 9 * 2 * 12),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), (1, 8, 8, 8), 8 * 8 * 9 * 8),
    "same": (lambda: nn.Conv2d(3, 8, 3, padding="same"), (1, 3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "same, even": (lambda: nn.Conv2d(3, 8, 4, padding="same"), (1, 3, 8, 8), 8 * 8 * 16 * 3 * 8),
    "valid": (lambda: nn.Conv2d(3, 8, 3, padding="valid"), (1, 3, 8, 8), 6 * 6 * 9 * 3 * 8),
    "reflected": (lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), (1, 3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "without a batch": (lambda: nn.Conv2d(3, 8, 3, padding=1), (3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "a subclass": (lambda: SubclassedConv(3, 8, 3, padding=1), (1, 3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "functional": (Borrowed, (1, 3, 8, 8), 8 * 8 * 9 * 3 * 8),
    "1x1 alone": (lambda: nn.Conv2d(128, 128, 1), (1, 128, 16, 16), 16 * 16 * 128 * 128),
    # Transposed: every input position is spread over all taps.
    "transposed": (lambda: nn.ConvTranspose2d(3, 1, 2, stride=2), (1, 3, 2, 2), 2 * 2 * 3 * 4 * 1),
    "transposed, one position": (lambda: nn.ConvTranspose2d(32, 1, 3), (1, 32, 1, 1), 32 * 9 * 1),
    "transposed, depthwise": (
        lambda: nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1, groups=4),
        (2, 4, 8, 8),
        2 * 8 * 8 * 4 * 9,
    ),
    "transposed, grouped": (
        lambda: nn.ConvTranspose2d(6, 6, 2, stride=2, groups=3),
        (2, 6, 8, 8),
        2 * 8 * 8 * 6 * 2 * 4,
    ),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    make, sizes, expected = CONVOLUTIONS[case]
    check(make(), expected, numbers(*sizes))


PRODUCTS = {
    "linear": (lambda: nn.Linear(3, 8), [(5, 10, 3)], 5 * 10 * 3 * 8),
    "linear, many dimensions": (lambda: nn.Linear(3, 8), [(5, 10, 10, 3)], 5 * 10 * 10 * 3 * 8),
    "linear, one vector": (lambda: nn.Linear(10, 11), [(10,)], 10 * 11),
    "linear, functional": (lambda: function(functional.linear), [(5, 10, 3), (8, 3)], 5 * 10 * 3 * 8),
    "bilinear": (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)], 2 * 5 * 3 * 4 + 2 * 5 * 4),
    "matmul": (lambda: function(torch.matmul), [(2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
    "operator": (lambda: function(lambda a, b: a @ b), [(2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
    "broadcast": (lambda: function(torch.matmul), [(2, 1, 3, 4), (5, 4, 6)], 2 * 5 * 3 * 4 * 6),
    "matrix and vector": (lambda: function(torch.matmul), [(3, 4), (4,)], 3 * 4),
    "vector and matrix": (lambda: function(torch.matmul), [(3,), (3, 4)], 3 * 4),
    "bmm": (lambda: function(torch.bmm), [(2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
    "mm": (lambda: function(torch.mm), [(3, 4), (4, 5)], 3 * 4 * 5),
    "mv": (lambda: function(torch.mv), [(3, 4), (4,)], 3 * 4),
    "addmv": (lambda: function(torch.addmv), [(3,), (3, 4), (4,)], 3 * 4),
    "baddbmm": (lambda: function(torch.baddbmm), [(2, 3, 5), (2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
    "dot": (lambda: function(torch.dot), [(8,), (8,)], 8),
    "outer, without a sum": (lambda: function(lambda a, b: torch.einsum("i,j->ij", a, b)), [(3,), (4,)], 0),
    "einsum": (
        lambda: function(lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b)),
        [(3, 7, 129, 33), (3, 7, 129, 33)],
        3 * 7 * 129 * 129 * 33,
    ),
    "with its transpose": (lambda: function(lambda a: a @ a.mT), [(2, 5, 3)], 2 * 5 * 5 * 3),
    "in a list": (lambda: function(lambda a, b: torch.linalg.multi_dot([a, b])), [(3, 4), (4, 5)], 3 * 4 * 5),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    make, sizes, expected = PRODUCTS[case]
    check(make(), expected, *(numbers(*each) for each in sizes))


DENSE = 2 * HEADS * TOKENS * TOKENS * WIDTH
PROJECTIONS, SCORES = 4 * 50 * 100 * 100, 2 * 50 * 50 * 100

ATTENTION = {
    "plain": (lambda: function(attend()), [(1, HEADS, TOKENS, WIDTH)] * 3, DENSE),
    "causal": (lambda: function(attend(is_causal=True)), [(1, HEADS, TOKENS, WIDTH)] * 3, DENSE),
    "masked": (
        lambda: function(attend(attn_mask=torch.ones(TOKENS, TOKENS, dtype=torch.bool))),
        [(1, HEADS, TOKENS, WIDTH)] * 3,
        DENSE,
    ),
    "one batch": (lambda: function(attend()), [(HEADS, TOKENS, WIDTH)] * 3, DENSE),
    "grouped queries": (
        lambda: function(attend(enable_gqa=True)),
        [(1, HEADS, TOKENS, WIDTH), (1, 3, TOKENS, WIDTH), (1, 3, TOKENS, WIDTH)],
        DENSE,
    ),
    "across": (
        lambda: function(attend()),
        [(1, HEADS, 5, WIDTH), (1, HEADS, 7, WIDTH), (1, HEADS, 7, WIDTH)],
        2 * HEADS * 5 * 7 * WIDTH,
    ),
    "values of another width": (
        lambda: function(attend()),
        [(1, HEADS, 8, 16), (1, HEADS, 8, 16), (1, HEADS, 8, 4)],
        HEADS * 8 * 8 * (16 + 4),
    ),
    "multi-head": (lambda: SelfAttention(100, 2, need_weights=False), [(1, 50, 100)], PROJECTIONS + SCORES),
    "multi-head, with weights": (lambda: SelfAttention(100, 2), [(1, 50, 100)], PROJECTIONS + SCORES),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        [(1, 10, 64)],
        4 * 10 * 64 * 64 + 2 * 10 * 10 * 64 + 2 * 10 * 64 * 128,
    ),
    "encoder layer, norm first": (
        lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True, activation="gelu"),
        [(1, 10, 64)],
        4 * 10 * 64 * 64 + 2 * 10 * 10 * 64 + 2 * 10 * 64 * 128,
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2),
        [(1, 10, 64)],
        2 * (4 * 10 * 64 * 64 + 2 * 10 * 10 * 64 + 2 * 10 * 64 * 128),
    ),
}


@pytest.mark.parametrize("case", ATTENTION)
def test_attention(case: str) -> None:
    make, sizes, expected = ATTENTION[case]
    check(make(), expected, *(numbers(*each) for each in sizes))


RECURRENT = {
    "lstm": (lambda: nn.LSTM(64, 64), [(STEPS, 1, 64)], STEPS * 4 * 64 * (64 + 64)),
    "gru": (lambda: nn.GRU(10, 20), [(5, 3, 10)], 5 * 3 * 3 * 20 * (10 + 20)),
    "rnn": (lambda: nn.RNN(10, 20), [(5, 3, 10)], 5 * 3 * 20 * (10 + 20)),
    "two layers": (
        lambda: nn.LSTM(30, 51, 2),
        [(10, 1, 30)],
        10 * (4 * 51 * (30 + 51) + 4 * 51 * (51 + 51)),
    ),
    "both directions": (lambda: nn.LSTM(10, 20, bidirectional=True), [(5, 3, 10)], 2 * 5 * 3 * 4 * 20 * (10 + 20)),
    "projected": (lambda: nn.LSTM(10, 20, proj_size=6), [(5, 3, 10)], 5 * 3 * (4 * 20 * (10 + 6) + 20 * 6)),
    "batch first": (lambda: nn.LSTM(10, 20, batch_first=True), [(3, 5, 10)], 3 * 5 * 4 * 20 * (10 + 20)),
    "a cell": (lambda: nn.LSTMCell(16, 8), [(3, 16)], 3 * 4 * 8 * (16 + 8)),
}


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_layers(case: str) -> None:
    make, sizes, expected = RECURRENT[case]
    check(make(), expected, *(numbers(*each) for each in sizes))


def check(model: nn.Module, expected: int, *arguments: Any) -> None:
    """The same MAC and the same operations whatever the device, the mode and the kernel; and in training mode the same MAC."""
    answers = list(forwards(model, *arguments))
    assert {name: mac for name, mac, _ in answers} == dict.fromkeys((name for name, _, _ in answers), expected)
    first = answers[0][2]
    assert [name for name, _, operations in answers if operations != first] == []
    trained = without_dropout(model)
    assert {way: followed(way, lambda *x: trained(*x), *arguments)[0] for way in ("meta", "real")} == {
        "meta": expected,
        "real": expected,
    }


def test_steps_are_counted_one_by_one() -> None:
    assert mac(nn.GRU(64, 64), numbers(STEPS, 1, 64)) == STEPS * 3 * 64 * (64 + 64)
    assert mac(nn.LSTM(300, 512, 2), numbers(STEPS, 1, 300)) == STEPS * 4 * 512 * (300 + 512 + 512 + 512)


def test_packed_sequences_cost_what_their_steps_do() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(numbers(5, 2, 3), [5, 3])
    assert mac(nn.LSTM(3, 4), packed) == (5 + 3) * 4 * 4 * (3 + 4)


def test_a_table_costs_nothing_to_look_up() -> None:
    record = estimate(nn.Embedding(100, 16), torch.zeros(2, 7, dtype=torch.long))
    assert (record.mac, record.flop(), record.unknown) == (0, {}, ())


@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_the_backward_of_a_convolution_knows_its_groups(groups: int) -> None:
    forward = 8 * 8 * 9 * 8 * 8 // groups
    convolution = nn.Conv2d(8, 8, 3, padding=1, groups=groups, bias=False)

    def step(x: torch.Tensor) -> None:
        convolution(x).sum().backward()

    found = macs(estimate(step, numbers(1, 8, 8, 8).requires_grad_()), "function")
    assert found == {FORWARD: forward, BACKWARD: 2 * forward}


def test_the_backward_of_a_transposed_convolution_asks_only_for_what_is_wanted() -> None:
    forward = 6 * 30 * 96 * 192 * 384 * 2 * 2
    layer = nn.ConvTranspose2d(192, 384, 2, stride=2, bias=False)
    found = macs(estimate(lambda x: layer(x).sum().backward(), numbers(6, 192, 30, 96)), "function")
    assert found == {FORWARD: forward, BACKWARD: forward}


def test_frozen_layers_cost_less() -> None:
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 5, bias=False))
    first, second = BATCH * 3 * 4, BATCH * 4 * 5
    assert macs(estimate(model, numbers(BATCH, 3), train=True), "layer") == {"0": 2 * first, "1": 3 * second}
    model[0].requires_grad_(False)
    assert macs(estimate(model, numbers(BATCH, 3), train=True), "layer") == {"0": first, "1": 2 * second}
    model[1].requires_grad_(False)
    assert macs(estimate(model, numbers(BATCH, 3), train=True), "layer") == {"0": first, "1": second}


def test_attention_in_training_costs_four_products_more() -> None:
    products = HEADS * TOKENS * TOKENS * WIDTH
    query = numbers(1, HEADS, TOKENS, WIDTH).requires_grad_()
    for way in ("meta", "fake", "real"):
        found, _ = followed(way, lambda q: attend()(q, q, q).sum().backward(), query)
        assert found == 2 * products + 4 * products


def test_one_recurrent_training_step_is_the_same_everywhere() -> None:
    for layer in (nn.RNN(6, 8), nn.GRU(6, 8), nn.LSTM(6, 8)):
        record = estimate(layer, numbers(5, 3, 6), train=True)
        assert (record.mac, record.unknown) == (followed("real", layer, numbers(5, 3, 6), train=True)[0], ())
        assert record.tally == followed("real", layer, numbers(5, 3, 6), train=True)[1]


def test_integer_products_are_no_floating_point_operations() -> None:
    record = estimate(torch.mm, numbers(3, 4, dtype=torch.int32), numbers(4, 5, dtype=torch.int32))
    assert (record.mac, record.flop()) == (3 * 4 * 5, {})
    assert list(record.op().values()) == [2 * 3 * 4 * 5]
    assert mac(torch._int_mm, numbers(32, 16, dtype=torch.int8), numbers(16, 8, dtype=torch.int8)) == 32 * 16 * 8


def test_quantized_layers_are_integer_products() -> None:
    with pytest.warns(DeprecationWarning):
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(10, 12)))
    record = estimate(model, numbers(BATCH, 10))
    assert (record.mac, record.unknown) == (BATCH * 10 * 12, ())
    assert [str(dtype) for dtype in record.op()] == ["int8"]


def test_grouped_products_of_experts() -> None:
    # Rows of all experts in one matrix, the first three for one, the other five for the other.
    ends = torch.tensor([3, 8], dtype=torch.int32)
    for dtype in (torch.bfloat16, torch.float32):
        tokens, experts = numbers(8, 16, dtype=dtype), numbers(2, 16, 32, dtype=dtype)
        assert mac(lambda a, b, end: functional.grouped_mm(a, b, offs=end), tokens, experts, ends) == 8 * 16 * 32


def test_complex_products_are_four_real_ones() -> None:
    square = numbers(4, 4, dtype=torch.complex64)
    assert mac(torch.mm, square, square) == 4 * 4 * 4 * 4


def test_sparse_products_cost_what_is_stored() -> None:
    diagonal = torch.eye(4).to_sparse()
    assert mac(torch.sparse.mm, diagonal, numbers(4, 5)) == 4 * 5
    assert mac(torch.mm, torch.eye(6).to_sparse_csr(), numbers(6, 5)) == 6 * 5


def test_flexible_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    query = numbers(1, 2, 128, 16)
    assert mac(lambda q: flex_attention(q, q, q), query) == 2 * 2 * 128 * 128 * 16


def test_padding_of_a_batch_is_part_of_an_encoders_work() -> None:
    tokens, width, inner = 5, 8, 16
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, inner, batch_first=True), 1)
    padding = torch.tensor([[False] * 4 + [True], [False] * 3 + [True] * 2])
    one = 4 * tokens * width * width + 2 * tokens * tokens * width + 2 * tokens * width * inner
    assert mac(encoder, numbers(2, tokens, width), src_key_padding_mask=padding) == 2 * one


def test_packed_attention_costs_what_its_sequences_do() -> None:
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    ends = torch.tensor([0, 3, 8], dtype=torch.int32)

    def attend(query: torch.Tensor) -> Any:
        return varlen.varlen_attn(query, query, query, ends, ends, 5, 5)

    assert mac(attend, numbers(8, 2, 16, dtype=torch.bfloat16)) == 2 * (3 * 3 + 5 * 5) * 2 * 16


def test_loops_and_branches_that_are_operators() -> None:
    from torch._higher_order_ops import scan, while_loop

    square = numbers(3, 3)
    assert mac(lambda x: torch.cond(x.sum() > 0, lambda x: x @ x @ x, lambda x: x @ x, (x,)), square) == 2 * 3 * 3 * 3
    assert mac(lambda x: scan(lambda c, y: (c @ c, y + 1), x, numbers(4, 3)), square) == 4 * 3 * 3 * 3

    def repeat(x: torch.Tensor) -> Any:
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x @ x), (torch.tensor(0), x))

    assert mac(repeat, square) == 5 * 3 * 3 * 3
