"""Recurrent networks against loops over numbers that count, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Numbers, Work, estimate
from flopwatch.flops.formulas.recurrent import Kind, Layer, cell_backward, layer, layer_backward
from flopwatch.flops.operations import DType, Operation
from tests.unit.flops.formulas.counting import Counting, accumulated, added, operations, relu, sigmoid, tanh

FP32 = Numbers(DType.FP32)


def next_state(kind: Kind, a: Any, b: Any, h: Any, c: Any) -> Any:
    """What follows from the gates that inputs (a) and state (b) give."""
    if kind is Kind.RELU:
        return relu(a[0] + b[0])
    if kind is Kind.TANH:
        return tanh(a[0] + b[0])
    if kind is Kind.LSTM:
        i, f, o = (sigmoid(a[place] + b[place]) for place in (0, 1, 3))
        g = tanh(a[2] + b[2])
        return o * tanh(f * c + i * g)
    r, z = (sigmoid(a[place] + b[place]) for place in (0, 1))
    n = tanh(a[2] + r * b[2])
    return (h - n) * z + n


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(Kind), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_a_layer_is_what_its_loops_do(
    kind: Kind, cells: int, inputs: int, hidden: int, projected: int, bias: bool
) -> None:
    seen = Counting()
    state = projected or hidden
    w = seen.numbers(kind.gates, hidden, inputs)
    u = seen.numbers(kind.gates, hidden, state)
    p = seen.numbers(projected, hidden)
    one, other = seen.numbers(kind.gates, hidden), seen.numbers(kind.gates, hidden)
    for _ in range(cells):
        x, h = seen.numbers(inputs), seen.numbers(state)
        made = []
        for unit in range(hidden):
            a = [accumulated(w[gate, unit] * x) for gate in range(kind.gates)]
            b = [accumulated(u[gate, unit] * h) for gate in range(kind.gates)]
            if bias:
                a = [value + shift for value, shift in zip(a, one[:, unit], strict=True)]
                b = [value + shift for value, shift in zip(b, other[:, unit], strict=True)]
            made.append(next_state(kind, a, b, h[0], seen.number()))
        for row in p:
            accumulated(weight * value for weight, value in zip(row, made, strict=True))
    found = layer(FP32, kind, cells, Layer(inputs, hidden, projected, bias))
    assert operations(found) == +seen.operations
    assert found.mac == cells * (kind.gates * hidden * (inputs + state) + projected * hidden)


def slope_of_sigmoid(gradient: Any, value: Any) -> Any:
    return gradient * (1 - value) * value


def slope_of_tanh(gradient: Any, value: Any) -> Any:
    return gradient * (1 - value * value)


@pytest.mark.parametrize("kind", Kind)
def test_the_gradients_of_a_cell_are_what_its_derivatives_do(kind: Kind) -> None:
    seen = Counting()
    later, given_, h, n, z, r, b = seen.numbers(7)
    gradient = later + given_
    if kind is Kind.TANH:
        slope_of_tanh(gradient, h)
    if kind is Kind.LSTM:
        i, f, g, o, c, t, dc = seen.numbers(7)
        do, dt = gradient * t, gradient * o
        dc = dc + slope_of_tanh(dt, t)
        di, dg, df, _ = dc * g, dc * i, dc * c, dc * f
        for each, value in ((di, i), (df, f), (do, o)):
            slope_of_sigmoid(each, value)
        slope_of_tanh(dg, g)
    if kind is Kind.GRU:
        # h - n is kept, and the state before gets z times the gradient beside what comes through the gates.
        dz, before = gradient * n, gradient * z
        dn = slope_of_tanh(gradient - before, n)
        dr, _ = dn * b, dn * r
        slope_of_sigmoid(dr, r)
        slope_of_sigmoid(dz, z)
        before + seen.number()
    assert operations(cell_backward(FP32, kind, 1, 1)) == +seen.operations


@pytest.mark.parametrize("kind", Kind)
def test_gradients_by_inputs_and_by_weights_are_as_many_products_as_the_forward(kind: Kind) -> None:
    cells, of = 7, Layer(5, 4)
    forward = layer(FP32, kind, cells, of).mac
    assert layer_backward(FP32, kind, cells, of).mac == 2 * forward
    assert layer_backward(FP32, kind, cells, of, weights=False).mac == forward
    lowest = layer_backward(FP32, kind, cells, of, inputs=False).mac
    assert lowest == 2 * forward - cells * kind.gates * of.hidden * of.inputs


def test_biases_sum_over_all_cells() -> None:
    seen = Counting()
    added(seen.numbers(7))
    cells, hidden = 7, 3
    with_bias = layer_backward(FP32, Kind.LSTM, cells, Layer(5, hidden))
    without = layer_backward(FP32, Kind.LSTM, cells, Layer(5, hidden, bias=False))
    assert operations(with_bias) - operations(without) == {
        Operation.ADD: 2 * 4 * hidden * seen.operations[Operation.ADD]
    }


def weights(
    gates: int, inputs: int, hidden: int, layers: int = 1, directions: int = 1, projected: int = 0, bias: bool = True
) -> list[Array]:
    found: list[Array] = []
    for place in range(layers):
        for _ in range(directions):
            width = directions * (projected or hidden) if place else inputs
            found += [Array((gates * hidden, width)), Array((gates * hidden, projected or hidden))]
            found += [Array((gates * hidden,))] * 2 if bias else []
            found += [Array((projected, hidden))] if projected else []
    return found


def worth(name: str, inputs: tuple[int, ...], params: list[Array], **more: Any) -> Work:
    given = {
        "data" if len(inputs) == 2 else "input": Array(inputs),
        "params": params,
        "has_biases": True,
        "num_layers": 1,
        "dropout": 0.0,
        "train": False,
        "bidirectional": False,
    }
    found = estimate(Op(name, given | more))
    assert isinstance(found, Work)
    return found


STEPS, WIDTH = 100, 64


@pytest.mark.parametrize(
    ("name", "gates", "mac"),
    [("lstm", 4, 3_276_800), ("gru", 3, 2_457_600), ("rnn_tanh", 1, 819_200), ("rnn_relu", 1, 819_200)],
)
def test_one_layer(name: str, gates: int, mac: int) -> None:
    found = worth(f"aten::{name}", (STEPS, 1, WIDTH), weights(gates, WIDTH, WIDTH))
    assert found.mac == STEPS * gates * WIDTH * (WIDTH + WIDTH) == mac


def test_a_small_one() -> None:
    assert worth("aten::lstm", (5, 3, 10), weights(4, 10, 20)).mac == 5 * 3 * 4 * 20 * (10 + 20) == 36_000


def test_two_layers() -> None:
    found = worth("aten::lstm", (100, 1, 300), weights(4, 300, 512, layers=2), num_layers=2)
    assert found.mac == 100 * 4 * 512 * ((300 + 512) + (512 + 512)) == 376_012_800


def test_both_directions_and_a_projection() -> None:
    params = weights(4, 10, 20, layers=2, directions=2, projected=6)
    found = worth("aten::lstm", (5, 3, 10), params, num_layers=2, bidirectional=True)
    assert found.mac == 5 * 3 * 2 * (4 * 20 * (10 + 6) + 6 * 20 + 4 * 20 * (2 * 6 + 6) + 6 * 20)


def test_packed_sequences_count_their_elements() -> None:
    lengths = (5, 3, 1)
    assert worth("aten::gru", (sum(lengths), 10), weights(3, 10, 20)) == worth(
        "aten::gru", (1, sum(lengths), 10), weights(3, 10, 20)
    )


def test_dropout_between_layers() -> None:
    params = weights(1, 10, 20, layers=3)
    still = worth("aten::rnn_tanh", (5, 3, 10), params, num_layers=3, train=True)
    dropped = worth("aten::rnn_tanh", (5, 3, 10), params, num_layers=3, train=True, dropout=0.5)
    between = 2 * 5 * 3 * 20
    assert operations(dropped) - operations(still) == {Operation.MUL: between, Operation.DIV: between}
    assert worth("aten::rnn_tanh", (5, 3, 10), params, num_layers=3, dropout=0.5) == still


def test_backends_give_the_same_under_their_names() -> None:
    params = weights(4, 10, 20, layers=2, directions=2)
    whole = worth("aten::lstm", (5, 3, 10), params, num_layers=2, bidirectional=True)
    on_gpu = worth(
        "aten::_cudnn_rnn",
        (5, 3, 10),
        [],
        num_layers=2,
        bidirectional=True,
        mode=2,
        weight=params,
        hidden_size=20,
        proj_size=0,
    )
    assert on_gpu == whole
    low, high = (
        worth("aten::mkldnn_rnn_layer", (5, 3, width), [], mode=2, hidden_size=20, has_biases=True)
        for width in (10, 40)
    )
    assert 2 * low + 2 * high == whole


def test_one_cell() -> None:
    given = {"input": Array((3, 16)), "w_ih": Array((32, 16)), "w_hh": Array((32, 8)), "b_ih": None, "b_hh": None}
    found = estimate(Op("aten::lstm_cell", given))
    assert isinstance(found, Work)
    assert found.mac == 3 * 4 * 8 * (16 + 8) == 2_304
