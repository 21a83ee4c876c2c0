"""Recurrent networks: simple ones, LSTM and GRU, of any number of layers and directions, with or without projection.

A cell is one element of a batch at one step, so packed sequences of any lengths count their elements and no padding. The
operations are those of PyTorch's cells written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


class Kind(StrEnum):
    """What a cell does."""

    RELU = "relu"
    TANH = "tanh"
    LSTM = "lstm"
    GRU = "gru"

    @property
    def gates(self) -> int:
        """Vectors as long as the hidden state that the weights make."""
        return _GATES[self]


_GATES = {Kind.RELU: 1, Kind.TANH: 1, Kind.LSTM: 4, Kind.GRU: 3}


class Layer(NamedTuple):
    """One direction of one layer: numbers of an input, of the state, and of the projected state where there is one."""

    inputs: int
    hidden: int
    projected: int = 0
    bias: bool = True


def cell(numbers: On, kind: Kind, cells: int, hidden: int) -> Work:
    """From both vectors of gates, biases added, to the next state, for so many cells; σ is 1 / (1 + exp(-x)).

    Simple: tanh or relu of the sum. LSTM (Hochreiter and Schmidhuber, 1997; forget gate, Gers et al., 2000): i, f, o = σ and
    g = tanh of the sums, c' = f c + i g, h' = o tanh c'. GRU (Cho et al., 2014): r, z = σ of the sums, n = tanh(a + r b),
    h' = (h - n) z + n.
    """
    size = cells * hidden
    if kind is Kind.RELU:
        return work(numbers, add=size, minmax=size)
    if kind is Kind.TANH:
        return work(numbers, add=size, transcendental=size)
    if kind is Kind.LSTM:
        return work(numbers, add=(4 + 3 + 1) * size, mul=3 * size, div=3 * size, transcendental=(3 + 2) * size)
    return work(numbers, add=(2 + 2 + 3) * size, mul=2 * size, div=2 * size, transcendental=(2 + 1) * size)


def cell_backward(numbers: On, kind: Kind, cells: int, hidden: int) -> Work:
    """From the gradient of a state to those of the gates and of the state before, what the forward made being kept.

    σ' and tanh' are two products and a difference each. LSTM: o and tanh c' (2 products), c' (a sum), i, g, f, c (4 products);
    GRU: z and h (2 products), n (a difference), r and b (2 products). A state's gradient is the sum of those of its uses.
    """
    size = cells * hidden
    if kind is Kind.RELU:
        return work(numbers, add=size)
    if kind is Kind.TANH:
        return work(numbers, add=(1 + 1) * size, mul=2 * size)
    if kind is Kind.LSTM:
        return work(numbers, add=(5 + 1 + 1) * size, mul=(2 + 4 + 5 * 2) * size)
    return work(numbers, add=(3 + 1 + 2) * size, mul=(2 + 2 + 3 * 2) * size)


def layer(numbers: On, kind: Kind, cells: int, of: Layer) -> Work:
    """W x + b, U h + b and the cell: gates · hidden · (inputs + state) MAC for a cell, and those of the projection."""
    weights, biases = parameters(kind, of)
    return work(numbers, mac=cells * weights, add=cells * biases) + cell(numbers, kind, cells, of.hidden)


def layer_backward(
    numbers: On, kind: Kind, cells: int, of: Layer, *, inputs: bool = True, weights: bool = True
) -> Work:
    """The gradients of a layer: by the state before always, by inputs and by weights and biases where wanted.

    Each is as many products as in the forward. Biases sum over all cells.
    """
    every, biases = parameters(kind, of)
    by_inputs = kind.gates * of.hidden * of.inputs
    mac = (every if inputs else every - by_inputs) + (every if weights else 0)
    sums = max(0, cells - 1) * biases if weights else 0
    return work(numbers, mac=cells * mac, add=sums) + cell_backward(numbers, kind, cells, of.hidden)


def parameters(kind: Kind, of: Layer) -> tuple[int, int]:
    """Weights and biases of one direction of one layer."""
    gates = kind.gates * of.hidden
    state = of.projected or of.hidden
    weights = gates * (of.inputs + state) + of.projected * of.hidden
    return weights, 2 * gates if of.bias else 0


def stack(inputs: int, hidden: int, projected: int, layers: int, directions: int, *, bias: bool) -> list[Layer]:
    """All directions of all layers: a layer takes what all directions of the one below give."""
    state = projected or hidden
    return [
        Layer(inputs if not place else directions * state, hidden, projected, bias)
        for place in range(layers)
        for _ in range(directions)
    ]


def network(numbers: On, kind: Kind, cells: int, layers: Sequence[Layer], *, dropped: int = 0) -> Work:
    """All layers; `dropped` elements of what goes from layer to layer are dropped out: the mask scaled, and a product."""
    made = work(numbers, mul=dropped, div=dropped)
    for of in layers:
        made += layer(numbers, kind, cells, of)
    return made


def network_backward(
    numbers: On,
    kind: Kind,
    cells: int,
    layers: Sequence[Layer],
    *,
    directions: int = 1,
    inputs: bool = True,
    weights: bool = True,
    dropped: int = 0,
) -> Work:
    """The gradients of all layers, by the inputs of the lowest only where wanted; directions add up in what they both took."""
    made = work(numbers, mul=dropped)
    for place, of in enumerate(layers):
        wanted = inputs or place >= directions
        made += layer_backward(numbers, kind, cells, of, inputs=wanted, weights=weights)
        if wanted and place % directions:
            made += work(numbers, add=cells * of.inputs)
    return made
