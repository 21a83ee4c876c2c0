"""Layers with a product of matrices, and the table of an embedding."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, axis_of, layer, refuse, several, single, size
from flopwatch.formats.caffe.network import Layer


@layer("InnerProduct")
def inner_product(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Everything from `axis` on is one vector; the axes before it stay."""
    settings = layer.settings("inner_product_param")
    shape = single(layer, bottoms)
    axis = axis_of(layer, settings.integer("axis", 1, least=-9), shape)
    outputs, inputs = settings.integer("num_output", least=1), size(shape[axis:])
    weights: dict[str, Shape] = {
        "weight": (inputs, outputs) if settings.flag("transpose", False) else (outputs, inputs)
    }
    if settings.flag("bias_term", True):
        weights["bias"] = (outputs,)
    return Made(((*shape[:axis], outputs),), weights, {"axis": axis})


@layer("Embed")
def embed(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A row of a table for each number."""
    settings = layer.settings("embed_param")
    outputs = settings.integer("num_output", least=1)
    weights: dict[str, Shape] = {"weight": (settings.integer("input_dim", least=1), outputs)}
    if settings.flag("bias_term", True):
        weights["bias"] = (outputs,)
    return Made(((*single(layer, bottoms), outputs),), weights)


@layer("LSTM", "RNN")
def recurrent(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Bottoms are a sequence (steps x streams x …), where sequences go on (steps x streams), and perhaps an input that stays."""
    settings = layer.settings("recurrent_param")
    hidden = settings.integer("num_output", least=1)
    exposed = settings.flag("expose_hidden", False)
    states = (2 if layer.type == "LSTM" else 1) if exposed else 0
    several(layer, bottoms, 2 + states, 3 + states)
    sequence, static = bottoms[0], len(bottoms) - states == 3
    if len(sequence) < 2 or tuple(bottoms[1]) != tuple(sequence[:2]):
        refuse(layer, "needs a sequence of steps x streams x features and a second bottom of steps x streams", bottoms)
    steps, streams, features = sequence[0], sequence[1], size(sequence[2:])
    gates = 4 if layer.type == "LSTM" else 1
    weights: dict[str, Shape] = {"input": (gates * hidden, features), "bias": (gates * hidden,)}
    if static:
        if bottoms[2][0] != streams:
            refuse(layer, f"has {streams} streams, but its third bottom another number", bottoms)
        weights["static"] = (gates * hidden, size(bottoms[2][1:]))
    weights["hidden"] = (gates * hidden, hidden)
    if layer.type == "RNN":
        weights |= {"output": (hidden, hidden), "output_bias": (hidden,)}
    tops = ((steps, streams, hidden),) + ((1, streams, hidden),) * states
    return Made(tops, weights)
