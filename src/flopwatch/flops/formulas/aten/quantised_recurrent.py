"""Recurrent networks with quantised weights: products of integers or by half-precision weights, and real cells between them.

The parameters of a cell are packed; a call shows them as a list [W (gates · hidden, inputs), U (gates · hidden, hidden), bias or
None, bias or None]. Calls that do not show them so are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, numbers_of, total, work
from flopwatch.flops.formulas.low_precision import dynamic_product
from flopwatch.flops.formulas.recurrent import Kind, cell


@formula("aten::quantized_lstm", "aten::quantized_gru")
def recur(op: Op) -> Work | Unknown:
    """All layers and directions; inputs are quantised once for each layer, states at each step."""
    given = op.arguments
    kind = Kind.LSTM if "lstm" in op.name else Kind.GRU
    packed = "data" in given
    inputs: Array = given["data"] if packed else given["input"]
    steps = given["batch_sizes"].size if packed else inputs.shape[1 if given.get("batch_first") else 0]
    every = [_parameters(each) for each in given["params"]]
    works: list[Work] = []
    for each in every:
        if each is None:
            return Unknown(op.name)
        works.append(_layer(inputs, kind, prod(inputs.shape[:-1]), steps, each))
    if not works:
        return Unknown(op.name)
    directions = 2 if given["bidirectional"] else 1
    if given.get("train") and given.get("dropout") and every[0] is not None:
        dropped = (
            prod(inputs.shape[:-1]) * max(0, len(works) - directions) * (_weight(every[0], 0).shape[0] // kind.gates)
        )
        works.append(work(inputs, mul=dropped, div=dropped))
    return total(works)


_CELLS = {"lstm": Kind.LSTM, "gru": Kind.GRU, "rnn_relu": Kind.RELU, "rnn_tanh": Kind.TANH}


@formula(
    *(f"aten::quantized_{name}_cell" for name in _CELLS),
    *(f"quantized::quantized_{name}_cell_dynamic" for name in _CELLS),
)
def one_cell(op: Op) -> Work | Unknown:
    """(batch, inputs); weights are tensors here, or packed ones shown as [weight, bias or None]."""
    given = op.arguments
    weights = [each[0] if isinstance(each, (list, tuple)) else each for each in (given["w_ih"], given["w_hh"])]
    biases = [given.get("b_ih", given.get("bias_ih")), given.get("b_hh", given.get("bias_hh"))]
    parameters = _parameters([*weights, *biases])
    if parameters is None:
        return Unknown(op.name)
    inputs: Array = given["input"]
    kind = next(kind for name, kind in _CELLS.items() if f"quantized_{name}_cell" in op.name)
    return _layer(inputs, kind, prod(inputs.shape[:-1]), 1, parameters)


def _layer(inputs: Array, kind: Kind, cells: int, steps: int, parameters: Sequence[Array | None]) -> Work:
    made = cell(inputs, kind, cells, _weight(parameters, 1).shape[0] // kind.gates)
    for place, calls in ((0, 1), (1, steps)):
        weight = _weight(parameters, place)
        outputs, width = weight.shape
        bias = len(parameters) > 2 and parameters[2 + place] is not None
        mac = cells * weight.size
        if numbers_of(weight).dtype.floating:
            made += work(inputs, mac=mac, add=cells * outputs if bias else 0)
        else:
            made += dynamic_product(cells * width, mac, cells * outputs, bias=bias, calls=calls)
    return made


def _weight(parameters: Sequence[Array | None], place: int) -> Array:
    found = parameters[place]
    assert found is not None
    return found


def _parameters(given: Any) -> list[Array | None] | None:
    if not isinstance(given, (list, tuple)) or len(given) < 2:
        return None
    matrices = all(isinstance(each, Array) and len(each.shape) == 2 for each in given[:2])
    return list(given) if matrices else None
