"""keras-flops, which asks TensorFlow's profiler about a Keras model."""

from __future__ import annotations

from typing import Any

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.cases import Case
from peers.native_keras import NATIVE

VERSION_OF = "keras-flops"


def prepare(case: Case) -> Any:
    """A Keras model; what is a function only is not for this."""
    if case.name not in NATIVE:
        raise NotForThisError
    import keras

    made, shapes = NATIVE[case.name]()
    if not isinstance(made, keras.layers.Layer):
        raise NotForThisError
    if isinstance(made, keras.Model):
        return made
    inputs = keras.Input(shape=shapes[0][1:])
    return keras.Model(inputs, made(inputs)), shapes[0][0]


def count(case: Case, model: Any) -> Count:
    """The profile of a batch."""
    from keras_flops import get_flops

    model, batch = model if isinstance(model, tuple) else (model, 1)
    return Count(get_flops(model, batch_size=batch), "FLOP")
