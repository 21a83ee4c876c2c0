"""Formulas on calls that PyTorch really makes: the names of the arguments, and one price whatever the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from flopwatch.events import Op  # noqa: E402
from flopwatch.flops.formulas import Work, estimate, total  # noqa: E402
from tests.unit.flops.formulas.seeing import only, seen  # noqa: E402

pytestmark = pytest.mark.torch
F = torch.nn.functional


def worth(op: Op) -> Work:
    found = estimate(op)
    assert isinstance(found, Work), found
    return found


def sum_of(ops: list[Op]) -> Work:
    """The work of all calls; every one of them must be known."""
    found = [estimate(op) for op in ops]
    for op, each in zip(ops, found, strict=True):
        assert isinstance(each, Work) or hasattr(each, "reason"), op.name
    return total(each for each in found if isinstance(each, Work))


def meta(*shape: int, **more: Any) -> Any:
    return torch.empty(shape, device="meta", **more)


def half(*shape: int) -> Any:
    return meta(*shape, dtype=torch.bfloat16)


def floats(*shape: int, **more: Any) -> Any:
    return torch.zeros(shape, **more)


@pytest.mark.parametrize(
    ("name", "call", "mac"),
    [
        ("mm", lambda: meta(3, 4) @ meta(4, 5), 3 * 4 * 5),
        ("bmm", lambda: torch.bmm(meta(2, 3, 4), meta(2, 4, 5)), 2 * 3 * 4 * 5),
        ("addmm", lambda: F.linear(meta(3, 4), meta(5, 4), meta(5)), 3 * 4 * 5),
        ("baddbmm", lambda: torch.baddbmm(meta(5), meta(2, 3, 4), meta(2, 4, 5)), 2 * 3 * 4 * 5),
        ("addbmm", lambda: torch.addbmm(meta(3, 5), meta(2, 3, 4), meta(2, 4, 5)), 2 * 3 * 4 * 5),
        ("mv", lambda: torch.mv(meta(3, 4), meta(4)), 3 * 4),
        ("addmv", lambda: torch.addmv(meta(3), meta(3, 4), meta(4)), 3 * 4),
        ("dot", lambda: torch.dot(meta(8), meta(8)), 8),
        ("vdot", lambda: torch.vdot(meta(8), meta(8)), 8),
        ("_int_mm", lambda: torch._int_mm(meta(32, 16, dtype=torch.int8), meta(16, 8, dtype=torch.int8)), 32 * 16 * 8),
        ("_addmm_activation", lambda: torch._addmm_activation(floats(5), floats(3, 4), floats(4, 5)), 3 * 4 * 5),
        ("_trilinear", lambda: F.bilinear(meta(7, 3), meta(7, 4), meta(5, 3, 4)), 7 * 5 * (3 * 4 + 4)),
        ("convolution", lambda: F.conv2d(meta(1, 3, 8, 8), meta(8, 3, 3, 3), padding="same"), 13_824),
        ("convolution", lambda: F.conv2d(meta(3, 8, 8), meta(8, 3, 3, 3), padding=1), 13_824),
        ("convolution", lambda: F.conv_transpose2d(meta(1, 3, 2, 2), meta(3, 1, 2, 2), stride=2), 48),
        ("mkldnn_convolution", lambda: torch.mkldnn_convolution(floats(1, 3, 8, 8), floats(8, 3, 3, 3), None, *[[1, 1]] * 3, 1), 13_824),
        ("conv_tbc", lambda: torch.conv_tbc(floats(5, 2, 3), floats(3, 3, 4), floats(4), 1), 5 * 2 * 3 * 3 * 4),
        ("_grouped_mm", lambda: F.grouped_mm(half(8, 16), half(4, 16, 32), offs=meta(4, dtype=torch.int32)), 8 * 16 * 32),
        ("_scaled_dot_product_flash_attention_for_cpu", lambda: F.scaled_dot_product_attention(*[floats(1, 12, 64, 64)] * 3), 6_291_456),
    ],
)  # fmt: skip
def test_calls_are_read_by_the_names_of_their_arguments(name: str, call: Callable[[], Any], mac: int) -> None:
    assert worth(only(f"aten::{name}", call)).mac == mac


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bhid,bhjd->bhij", ((3, 7, 5, 4), (3, 7, 6, 4))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
        ("ij->j", ((2, 3),)),
        ("ii->i", ((3, 3),)),
        ("i,j->ij", ((2,), (3,))),
        ("...ij,...jk", ((2, 1, 3, 4), (5, 4, 6))),
        ("ij,ik->k", ((2, 3), (2, 4))),
        ("bij,bij->b", ((2, 3, 4), (2, 3, 4))),
        ("ij,ij->ij", ((2, 3), (2, 3))),
    ],
)
def test_a_sum_in_einsteins_notation_costs_what_it_is_made_of(
    equation: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    def call() -> Any:
        return torch.einsum(equation, *(floats(*shape) for shape in shapes))

    with torch.inference_mode():
        whole = only("aten::einsum", call)
    parts = [op for op in seen(call) if op.name not in ("aten::zeros",)]
    assert worth(whole) == sum_of(parts)


@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("mask", ["none", "causal", "added"])
@pytest.mark.parametrize("backward", [False, True])
def test_attention_costs_what_it_is_made_of(shared: int, mask: str, backward: bool) -> None:
    def made(make: Callable[..., Any]) -> list[Op]:
        q = make(2, 4, 6, 8, requires_grad=backward)
        k, v = make(2, shared, 6, 8, requires_grad=backward), make(2, shared, 6, 8, requires_grad=backward)
        added = make(6, 6) if mask == "added" else None
        one = make(2, 4, 6, 8)

        def call() -> None:
            out = F.scaled_dot_product_attention(q, k, v, added, is_causal=mask == "causal", enable_gqa=shared < 4)
            if backward:
                out.backward(one)

        return seen(call)

    parts, fused = made(meta), [op for op in made(floats) if "attention" in op.name]
    assert len(fused) == 1 + backward
    whole = sum_of(fused)
    assert (whole.tally, whole.mac) == (sum_of(parts).tally, sum_of(parts).mac)


@pytest.mark.parametrize("weights", [False, True])
def test_multi_head_attention_costs_what_it_is_made_of(weights: bool) -> None:
    module = torch.nn.MultiheadAttention(12, 4, batch_first=True).eval()
    x = floats(2, 5, 12)
    with torch.no_grad():
        whole = worth(only("aten::_native_multi_head_attention", lambda: module(x, x, x, need_weights=weights)))
    on_meta = module.to("meta")
    parts = sum_of(seen(lambda: on_meta(*[meta(2, 5, 12)] * 3, need_weights=weights)))
    assert (whole.tally, whole.mac) == (parts.tally, parts.mac)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("first", [False, True])
def test_an_encoder_layer_costs_what_it_is_made_of(activation: str, first: bool) -> None:
    def made() -> Any:
        return torch.nn.TransformerEncoderLayer(
            12, 4, 20, dropout=0, activation=activation, batch_first=True, norm_first=first
        )

    module = made().eval()
    with torch.no_grad():
        whole = worth(only("aten::_transformer_encoder_layer_fwd", lambda: module(floats(2, 5, 12))))
    on_meta = made().train().to("meta")
    parts = sum_of(seen(lambda: on_meta(meta(2, 5, 12))))
    assert (whole.tally, whole.mac) == (parts.tally, parts.mac)


NETWORKS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("more", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}, {"batch_first": True}])
def test_recurrent_networks_cost_what_they_are_made_of(name: str, more: dict[str, Any]) -> None:
    module = NETWORKS[name](5, 4, **more)
    with torch.inference_mode():
        whole = worth(only(f"aten::{name}", lambda: module(floats(3, 2, 5))))
    on_cpu = sum_of([op for op in seen(lambda: module(floats(3, 2, 5))) if op.name != "aten::zeros"])
    on_meta = module.to("meta")
    parts = sum_of(seen(lambda: on_meta(meta(3, 2, 5))))
    assert whole == parts == on_cpu


def test_a_projection_costs_what_it_is_made_of() -> None:
    module = torch.nn.LSTM(5, 4, proj_size=3, num_layers=2)
    with torch.inference_mode():
        whole = worth(only("aten::lstm", lambda: module(floats(3, 2, 5))))
    on_meta = module.to("meta")
    assert whole == sum_of(seen(lambda: on_meta(meta(3, 2, 5))))


def test_packed_sequences_cost_what_they_are_made_of() -> None:
    module = torch.nn.GRU(5, 4)
    packed = torch.nn.utils.rnn.pack_sequence([floats(3, 5), floats(1, 5)])
    with torch.inference_mode():
        whole = worth(only("aten::gru", lambda: module(packed)))
    with torch.no_grad():
        parts = sum_of(
            [op for op in seen(lambda: module(packed)) if op.name not in ("aten::zeros", "aten::_local_scalar_dense")]
        )
    assert whole == parts


def test_gradients_of_a_grouped_convolution() -> None:
    x, w = meta(1, 8, 8, 8, requires_grad=True), meta(8, 1, 3, 3, requires_grad=True)
    ops = seen(lambda: F.conv2d(x, w, padding=1, groups=8).sum().backward())
    (backward,) = (op for op in ops if op.name == "aten::convolution_backward")
    assert sum(worth(backward).tally.flop().values()) == 18_432


def test_a_frozen_input_costs_nothing_backward() -> None:
    x, w = meta(1, 8, 8, 8), meta(8, 8, 3, 3, requires_grad=True)
    ops = seen(lambda: F.conv2d(x, w, padding=1).sum().backward())
    forward, backward = (op for op in ops if op.name.startswith("aten::convolution"))
    assert worth(backward).mac == worth(forward).mac


def test_second_gradients_cost_four_products_in_all() -> None:
    x, w = meta(1, 2, 5, requires_grad=True), meta(3, 2, 3, requires_grad=True)

    def call() -> None:
        grads = torch.autograd.grad(F.conv1d(x, w).sum(), (x, w), create_graph=True)
        sum(grad.square().sum() for grad in grads).backward()

    macs = [worth(op).mac for op in seen(call) if "convolution" in op.name]
    assert sum(macs) == (1 + 2 + 4) * (3 * 3 * 2 * 3)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_of_a_sparse_matrix_the_elements_that_it_holds_are_multiplied(layout: str) -> None:
    matrix = getattr(torch.eye(4), layout)()
    name = {"to_sparse": "aten::mm", "to_sparse_csr": "aten::mm"}[layout]
    assert worth(only(name, lambda: matrix @ torch.zeros(4, 5))).mac == 4 * 5


def test_complex_and_integer_products() -> None:
    assert (
        worth(only("aten::mm", lambda: meta(3, 4, dtype=torch.complex64) @ meta(4, 5, dtype=torch.complex64))).mac
        == 4 * 60
    )
    whole = worth(only("aten::mm", lambda: meta(3, 4, dtype=torch.int32) @ meta(4, 5, dtype=torch.int32)))
    assert (whole.mac, sum(whole.tally.op().values()), whole.tally.flop()) == (60, 2 * 60, {})


def test_gradients_of_a_recurrent_network_are_as_many_products_as_its_parts_have() -> None:
    """With all gradients wanted: the fused backward does not tell which are."""

    def made(make: Callable[..., Any], module: Any) -> list[Op]:
        x, h, c = (
            make(3, 2, 5, requires_grad=True),
            make(1, 2, 4, requires_grad=True),
            make(1, 2, 4, requires_grad=True),
        )
        one = make(3, 2, 4)
        return seen(lambda: module(x, (h, c))[0].backward(one))

    module = torch.nn.LSTM(5, 4)
    (backward,) = (op for op in made(floats, module) if op.name == "aten::mkldnn_rnn_layer_backward")
    forward = 3 * 2 * 4 * 4 * (5 + 4)
    parts = made(meta, module.to("meta"))
    assert worth(backward).mac == sum_of(parts).mac - forward == 2 * forward


def test_packed_attention_is_read_by_the_names_of_its_arguments() -> None:
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    tokens, heads, width, longest = 10, 2, 16, 5
    x, ends = half(tokens, heads, width), meta(3, dtype=torch.int32)
    op = only("torch_attn::_varlen_attn", lambda: varlen.varlen_attn(x, x, x, ends, ends, longest, longest))
    assert worth(op).mac == 2 * heads * longest * longest * 2 * width


def test_gradients_of_a_layer_of_experts() -> None:
    tokens, inner, columns, experts = 8, 16, 32, 4
    x, w = half(tokens, inner).requires_grad_(), half(experts, inner, columns).requires_grad_()
    one, ends = half(tokens, columns), meta(experts, dtype=torch.int32)
    ops = seen(lambda: F.grouped_mm(x, w, offs=ends).backward(one))
    assert [worth(op).mac for op in ops if op.name == "aten::_grouped_mm"] == 3 * [tokens * inner * columns]


def test_gradients_of_a_transposed_convolution() -> None:
    x, w = meta(6, 192, 30, 96), meta(192, 384, 2, 2, requires_grad=True)
    ops = seen(lambda: F.conv_transpose2d(x, w, stride=2).sum().backward())
    forward, backward = (worth(op) for op in ops if op.name.startswith("aten::convolution"))
    assert sum(forward.tally.flop().values()) == 2 * 6 * 30 * 96 * 192 * 384 * 4 == 10_192_158_720
    assert backward.mac == forward.mac  # the input needs no gradient


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution_is_read_by_the_names_of_its_arguments(masked: bool) -> None:
    ops = pytest.importorskip("torchvision.ops")
    x, w = floats(2, 6, 8, 8, requires_grad=True), floats(4, 6, 3, 3, requires_grad=True)
    offset, mask = floats(2, 2 * 9, 6, 6, requires_grad=True), floats(2, 9, 6, 6) if masked else None
    found = seen(lambda: ops.deform_conv2d(x, offset, w, mask=mask).sum().backward())
    forward, backward = (worth(op) for op in found if "deform_conv2d" in op.name)
    assert (forward.mac, backward.mac) == (2 * 36 * 4 * 6 * 9, 2 * forward.mac)


def test_products_of_quantised_tensors_are_read_by_the_names_of_their_arguments() -> None:
    weight = torch.quantize_per_tensor(floats(6, 4, 3, 3), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(weight, None, [1, 1], [1, 1], [1, 1], 1)
    x = torch.quantize_per_tensor(floats(2, 4, 8, 8), 0.1, 0, torch.quint8)
    op = only("quantized::conv2d", lambda: torch.ops.quantized.conv2d(x, packed, 0.1, 0))
    assert worth(op).mac == 2 * 64 * 6 * 4 * 9
