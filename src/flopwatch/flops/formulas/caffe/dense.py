"""Layers of Caffe with a product of matrices, and the look-up of an embedding."""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas.caffe.reading import bottom_of, made, numbers, setting
from flopwatch.flops.formulas.elementwise import elementwise
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
    """Gates i, f, o, g from 4 · hidden · (features + hidden) products at each step (arXiv:1411.4389, without peepholes).

    A bias, and a sum with the part of the state before and with that of an input that stays, which is made once; σ of three
    gates, tanh of g; c = f · c + i · g; h = o · tanh(c). Where a sequence begins anew the state is masked, which is free.
    """
    cells, products = _recurrent(op)
    sums = work(numbers(op), add=4 * cells * (2 + ("static" in op.arguments)))
    update = work(numbers(op), mul=2 * cells, fma=cells, transcendental=2 * cells)
    return products + sums + elementwise("sigmoid", numbers(op), 3 * cells) + update


@formula("caffe::RNN")
def _rnn(op: Op) -> Work:
    """h = tanh(W h + U x + b) and o = tanh(V h + c), at each step."""
    cells, products = _recurrent(op)
    output = work(numbers(op), mac=cells * setting(op, "output").shape[1], add=cells)
    sums = work(numbers(op), add=cells * (2 + ("static" in op.arguments)), transcendental=2 * cells)
    return products + output + sums


def _recurrent(op: Op) -> tuple[int, Work]:
    """Numbers of state that all steps of all streams make, and the products with the weights of input and state."""
    steps, streams = bottom_of(op).shape[:2]
    mac = steps * streams * (setting(op, "input").size + setting(op, "hidden").size)
    static: Array | None = op.arguments.get("static")
    mac += streams * static.size if static is not None else 0
    return steps * streams * setting(op, "hidden").shape[1], work(numbers(op), mac=mac)


@formula("caffe::Embed")
def _embed(op: Op) -> Work | Free:
    """A look-up, which is free, and the addition of a bias if there is one."""
    if "bias" not in op.arguments:
        return Free("looks up rows of a table")
    return work(numbers_of(setting(op, "weight")), add=made(op))
