"""Layers of Caffe with a product of matrices, and the look-up of an embedding."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import recurrent
from flopwatch.flops.formulas.caffe.reading import bottom_of, made, numbers, setting
from flopwatch.flops.formulas.products import linear
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of, work


@formula("caffe::InnerProduct")
def _inner_product(op: Op) -> Work:
    bottom, axis = bottom_of(op), setting(op, "axis")
    positions, inputs = prod(bottom.shape[:axis]), prod(bottom.shape[axis:])
    return linear(numbers(op), positions, inputs, made(op) // positions, bias="bias" in op.arguments)


@formula("caffe::LSTM")
def _lstm(op: Op) -> Work:
    """Gates i, f, o, g from 4 · hidden · (features + hidden) products at each step and a bias, then the cell (arXiv:1411.4389).

    The part of an input that stays is made once and added at each step. Where a sequence begins anew the state is masked, which
    is free.
    """
    return _gated(op, recurrent.Kind.LSTM)


@formula("caffe::RNN")
def _rnn(op: Op) -> Work:
    """h = tanh(W h + U x + b) and o = tanh(V h + c), at each step."""
    cells, inner = made(op), setting(op, "output").shape[1]
    return _gated(op, recurrent.Kind.TANH) + work(numbers(op), mac=cells * inner, add=cells, transcendental=cells)


def _gated(op: Op, kind: recurrent.Kind) -> Work:
    steps, streams = bottom_of(op).shape[:2]
    rows = steps * streams
    gates, hidden = setting(op, "hidden").shape
    static: Array | None = op.arguments.get("static")
    products = rows * (setting(op, "input").size + gates * hidden) + (streams * static.size if static else 0)
    sums = rows * gates * (2 if static else 1)
    return work(numbers(op), mac=products, add=sums) + recurrent.cell(numbers(op), kind, rows, hidden)


@formula("caffe::Embed")
def _embed(op: Op) -> Work | Free:
    """A look-up, which is free, and the addition of a bias if there is one."""
    if "bias" not in op.arguments:
        return Free("looks up rows of a table")
    return work(numbers_of(setting(op, "weight")), add=made(op))
