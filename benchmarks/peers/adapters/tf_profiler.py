"""TensorFlow's profiler of floating-point operations, on the graph of a function."""

from __future__ import annotations

from typing import Any

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.cases import Case
from peers.native_keras import NATIVE, Native

VERSION_OF = "tensorflow-cpu"

__all__ = ["VERSION_OF", "count", "prepare"]


def prepare(case: Case) -> Native:
    """A layer, built by one call, with the shapes of its arguments."""
    if case.name not in NATIVE:
        raise NotForThisError
    import tensorflow

    made, shapes = NATIVE[case.name]()
    made(*(tensorflow.zeros(shape) for shape in shapes))
    return made, shapes


def count(case: Case, native: Native) -> Count:
    """Trace the function and profile its graph."""
    import tensorflow as tf

    made, shapes = native
    traced: Any = tf.function(lambda *arguments: made(*arguments))
    graph = traced.get_concrete_function(*(tf.TensorSpec(shape) for shape in shapes)).graph
    v1 = tf.compat.v1
    options = v1.profiler.ProfileOptionBuilder(v1.profiler.ProfileOptionBuilder.float_operation())
    found = v1.profiler.profile(graph, cmd="op", options=options.with_empty_output().build())
    return Count(found.total_float_ops, "FLOP")
