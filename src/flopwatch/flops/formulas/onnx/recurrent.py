"""Recurrent networks: RNN, GRU and LSTM over all steps, in one or both directions.

Each gate of a step is W·x + R·h + b_W + b_R: a multiply-accumulate for each weight, one addition that joins both products, and one
for each bias. Where the lengths of the sequences are known, steps behind their ends are not counted; else all have all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas.onnx.arguments import given, has
from flopwatch.flops.formulas.onnx.elementwise import activation
from flopwatch.flops.formulas.onnx.quantized import made_integers
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, total, work

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class _Sizes(NamedTuple):
    """`steps` counts those of all sequences and directions together."""

    numbers: Array
    steps: int
    inputs: int
    hidden: int
    directions: int


def _sizes(op: Op) -> _Sizes:
    data, recurrent = given(op, "X"), given(op, "R")
    directions = recurrent.shape[0]
    first, second, inputs = data.shape
    batch, length = (first, second) if op.arguments.get("layout") else (second, first)
    lengths = op.arguments.get("sequence_lens_value")
    steps = sum(min(each, length) for each in lengths) if lengths else batch * length
    hidden = op.arguments.get("hidden_size") or recurrent.shape[-1]
    return _Sizes(data, steps * directions, inputs, hidden, directions)


def _functions(op: Op, sizes: _Sizes, defaults: Sequence[str], counts: Sequence[int]) -> Work | Unknown:
    """The activation functions of all steps: the i-th is applied to counts[i] · hidden numbers of each."""
    named = op.arguments.get("activations") or list(defaults) * sizes.directions
    each = len(defaults)
    parts = []
    steps = sizes.steps // sizes.directions
    for place, name in enumerate(named[: each * sizes.directions]):
        found = activation(name, Array((steps * sizes.hidden * counts[place % each],), sizes.numbers.dtype))
        if isinstance(found, Unknown):
            return found
        parts.append(found)
    if op.arguments.get("clip"):
        parts.append(work(sizes.numbers, minmax=2 * sizes.steps * sizes.hidden * sum(counts)))
    return total(parts)


def _products(op: Op, sizes: _Sizes, gates: int) -> Work:
    outputs = sizes.steps * gates * sizes.hidden
    biases = 2 if has(op, "B") else 0
    return work(sizes.numbers, mac=outputs * (sizes.inputs + sizes.hidden), add=outputs * (1 + biases))


@formula("onnx::RNN")
def rnn(op: Op) -> Work | Unknown:
    """h = f(W·x + R·h + b)."""
    sizes = _sizes(op)
    functions = _functions(op, sizes, ("Tanh",), (1,))
    return functions if isinstance(functions, Unknown) else _products(op, sizes, 1) + functions


@formula("onnx::GRU")
def gru(op: Op) -> Work | Unknown:
    """z, r = f(W·x + R·h + b), n = g(W·x + R·(r ⊙ h) + b) or with r ⊙ (R·h + b), h = (h - n) ⊙ z + n (arXiv:1406.1078)."""
    sizes = _sizes(op)
    functions = _functions(op, sizes, ("Sigmoid", "Tanh"), (2, 1))
    if isinstance(functions, Unknown):
        return functions
    numbers = sizes.steps * sizes.hidden
    return _products(op, sizes, 3) + functions + work(sizes.numbers, mul=2 * numbers, add=2 * numbers)


@formula("onnx::LSTM")
def lstm(op: Op) -> Work | Unknown:
    """i, o, f = f(W·x + R·h + P ⊙ c + b), n = g(W·x + R·h + b), c = f ⊙ c + i ⊙ n, h = o ⊙ h(c) (Hochreiter, Schmidhuber 1997)."""
    sizes = _sizes(op)
    rest = _cells(op, sizes)
    return rest if isinstance(rest, Unknown) else _products(op, sizes, 4) + rest


def _cells(op: Op, sizes: _Sizes) -> Work | Unknown:
    if op.arguments.get("input_forget"):
        return Unknown(f"{op.name} with coupled gates")
    functions = _functions(op, sizes, ("Sigmoid", "Tanh", "Tanh"), (3, 1, 1))
    if isinstance(functions, Unknown):
        return functions
    numbers = sizes.steps * sizes.hidden
    peepholes = 3 * numbers if has(op, "P") else 0
    return functions + work(sizes.numbers, mul=3 * numbers, add=numbers, fma=peepholes)


@formula("com.microsoft::DynamicQuantizeLSTM")
def quantized(op: Op) -> Work | Unknown:
    """As LSTM, with products of integers: the inputs of all steps, and the states of each, are made integers of 8 bits.

    The sums of both products are scaled: a product for each, and one of the two scales for each step and column of weights.
    """
    data, weight, recurrent = given(op, "X"), given(op, "W"), given(op, "R")
    hidden = op.arguments.get("hidden_size") or recurrent.shape[1]
    directions = weight.shape[0]
    length, batch, inputs = data.shape
    sizes = _Sizes(data, batch * length * directions, inputs, hidden, directions)
    rest = _cells(op, sizes)
    if isinstance(rest, Unknown):
        return rest
    outputs = sizes.steps * 4 * hidden
    integers = work(Array((), weight.dtype), mac=outputs * (inputs + hidden))
    states = length * directions * made_integers(Array((batch, hidden), data.dtype))
    biases = 2 if has(op, "B") else 0
    scaled = work(data, mul=2 * outputs, add=outputs * (1 + biases))
    return integers + made_integers(data) + states + scaled + rest
