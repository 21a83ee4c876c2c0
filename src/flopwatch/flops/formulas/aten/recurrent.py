"""Recurrent networks, whole or cell by cell, under the names of their backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula, work
from flopwatch.flops.formulas.recurrent import (
    Kind,
    Layer,
    cell,
    cell_backward,
    layer,
    layer_backward,
    network,
    network_backward,
    stack,
)

_NAMED = {
    "aten::rnn_relu": Kind.RELU,
    "aten::rnn_tanh": Kind.TANH,
    "aten::lstm": Kind.LSTM,
    "aten::_lstm_mps": Kind.LSTM,
    "aten::gru": Kind.GRU,
}
# The numbers that backends have for the kinds.
_MODES = (Kind.RELU, Kind.TANH, Kind.LSTM, Kind.GRU)


@formula(*_NAMED)
def recur(op: Op) -> Work:
    """`params` holds for each layer and direction W (gates · hidden, inputs), U (gates · hidden, state), perhaps two biases,
    perhaps a projection (state, hidden). Input is (steps, batch, inputs), or packed: `data` (elements of all steps, inputs).
    """
    given = op.arguments
    inputs: Array = given.get("data") or given["input"]
    directions = 2 if given["bidirectional"] else 1
    layers = layers_of(given["params"], given["num_layers"] * directions, _NAMED[op.name])
    return _network(op, _NAMED[op.name], inputs, layers, directions)


@formula("aten::_cudnn_rnn", "aten::miopen_rnn")
def recur_on_gpu(op: Op) -> Work:
    """As above, the weights in `weight`; packed sequences where `batch_sizes` has something."""
    kind, layers, directions = _on_gpu(op.arguments)
    return _network(op, kind, op.arguments["input"], layers, directions)


@formula("aten::_cudnn_rnn_backward", "aten::miopen_rnn_backward")
def recur_on_gpu_backward(op: Op) -> Work:
    """`output_mask`: are the gradients by input, first states and weights wanted?"""
    given = op.arguments
    inputs: Array = given["input"]
    kind, layers, directions = _on_gpu(given)
    by_input, _, _, by_weight = given["output_mask"]
    cells = prod(inputs.shape[:-1])
    return network_backward(
        inputs,
        kind,
        cells,
        layers,
        directions=directions,
        inputs=by_input,
        weights=by_weight,
        dropped=_dropped(given, cells, layers, directions),
    )


@formula("aten::lstm_mps_backward")
def recur_on_mps_backward(op: Op) -> Work:
    """All gradients."""
    given = op.arguments
    inputs: Array = given["input"]
    directions = 2 if given["bidirectional"] else 1
    layers = layers_of(given["params"], given["num_layers"] * directions, Kind.LSTM)
    cells = prod(inputs.shape[:-1])
    dropped = _dropped(given, cells, layers, directions)
    return network_backward(inputs, Kind.LSTM, cells, layers, directions=directions, dropped=dropped)


@formula("aten::mkldnn_rnn_layer")
def recur_one_layer(op: Op) -> Work:
    """One direction of one layer; its weights may be packed, so the sizes are taken from elsewhere."""
    inputs: Array = op.arguments["input"]
    return layer(inputs, _MODES[op.arguments["mode"]], prod(inputs.shape[:-1]), _one_layer(op.arguments))


@formula("aten::mkldnn_rnn_layer_backward")
def recur_one_layer_backward(op: Op) -> Work:
    """All gradients of it: there is no word on which of them are wanted."""
    inputs: Array = op.arguments["input"]
    return layer_backward(inputs, _MODES[op.arguments["mode"]], prod(inputs.shape[:-1]), _one_layer(op.arguments))


_CELLS = {
    "aten::rnn_relu_cell": Kind.RELU,
    "aten::rnn_tanh_cell": Kind.TANH,
    "aten::lstm_cell": Kind.LSTM,
    "aten::gru_cell": Kind.GRU,
}


@formula(*_CELLS)
def one_cell(op: Op) -> Work:
    """(batch, inputs), or one vector of inputs."""
    given = op.arguments
    kind = _CELLS[op.name]
    inputs: Array = given["input"]
    (of,) = layers_of([given[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")], 1, kind)
    return layer(inputs, kind, prod(inputs.shape[:-1]), of)


@formula("aten::_thnn_fused_lstm_cell")
def gates_of_lstm(op: Op) -> Work:
    """From products, (batch, 4 · hidden), without biases yet, to states."""
    return _gates(op, Kind.LSTM)


@formula("aten::_thnn_fused_gru_cell")
def gates_of_gru(op: Op) -> Work:
    """From products, (batch, 3 · hidden), without biases yet, to states."""
    return _gates(op, Kind.GRU)


@formula(
    "aten::_thnn_fused_lstm_cell_backward",
    "aten::_thnn_fused_lstm_cell_backward_impl",
    "aten::_thnn_differentiable_lstm_cell_backward",
)
def gates_of_lstm_backward(op: Op) -> Work:
    """From the gradients of states to those of products and biases; one form makes the gates again, which is not counted."""
    return _gates_backward(op, Kind.LSTM, op.arguments["cx"])


@formula("aten::_thnn_fused_gru_cell_backward", "aten::_thnn_differentiable_gru_cell_backward")
def gates_of_gru_backward(op: Op) -> Work:
    """The same for the other kind."""
    return _gates_backward(op, Kind.GRU, op.arguments["grad_hy"])


def layers_of(params: Sequence[Array | None], count: int, kind: Kind) -> list[Layer]:
    """So many layers, directions apart, from the flat list of their parameters."""
    each = len(params) // max(1, count)
    layers = []
    for start in range(0, each * count, each):
        found = [param for param in params[start : start + each] if param is not None]
        weights = [param for param in found if len(param.shape) == 2]
        hidden = weights[1].shape[0] // kind.gates
        projected = weights[2].shape[0] if len(weights) > 2 else 0
        layers.append(Layer(weights[0].shape[1], hidden, projected, len(found) > len(weights)))
    return layers


def _network(op: Op, kind: Kind, inputs: Array, layers: Sequence[Layer], directions: int) -> Work:
    cells = prod(inputs.shape[:-1])
    return network(inputs, kind, cells, layers, dropped=_dropped(op.arguments, cells, layers, directions))


def _dropped(given: Mapping[str, Any], cells: int, layers: Sequence[Layer], directions: int) -> int:
    if not given.get("train") or not given.get("dropout") or not layers:
        return 0
    return cells * max(0, len(layers) - directions) * (layers[0].projected or layers[0].hidden)


def _on_gpu(given: Mapping[str, Any]) -> tuple[Kind, list[Layer], int]:
    kind = _MODES[given["mode"]]
    directions = 2 if given["bidirectional"] else 1
    inputs: Array = given["input"]
    projected = given.get("proj_size") or 0
    # Two weights for each layer and direction, and one for the projection; what is left are biases.
    bias = len(given["weight"]) > given["num_layers"] * directions * (2 + (projected > 0))
    width = inputs.shape[-1]
    return kind, stack(width, given["hidden_size"], projected, given["num_layers"], directions, bias=bias), directions


def _one_layer(given: Mapping[str, Any]) -> Layer:
    inputs: Array = given["input"]
    return Layer(inputs.shape[-1], given["hidden_size"], 0, given["has_biases"])


def _gates(op: Op, kind: Kind) -> Work:
    given = op.arguments
    gates: Array = given["input_gates"]
    cells = prod(gates.shape[:-1])
    biases = sum(gates.size for name in ("input_bias", "hidden_bias") if given.get(name) is not None)
    return cell(gates, kind, cells, gates.shape[-1] // kind.gates) + work(gates, add=biases)


def _gates_backward(op: Op, kind: Kind, state: Array) -> Work:
    given = op.arguments
    cells, hidden = prod(state.shape[:-1]), state.shape[-1]
    bias = given.get("has_bias", given.get("input_bias") is not None) and not op.name.endswith("_impl")
    # Of LSTM both biases have the same gradient; of GRU the gates of n differ.
    sums = (cells - 1) * hidden * (kind.gates if kind is Kind.LSTM else 2 * kind.gates) if bias and cells else 0
    return cell_backward(state, kind, cells, hidden) + work(state, add=sums)
