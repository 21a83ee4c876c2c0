"""JAX: the cost analysis of a compiled function; work on padding is left out of it by design."""

from __future__ import annotations

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.cases import Case
from peers.native_jax import NATIVE, Native

VERSION_OF = "jax"


def prepare(case: Case) -> Native:
    """A function with the shapes of its arguments."""
    if case.name not in NATIVE:
        raise NotForThisError
    return NATIVE[case.name]()


def count(case: Case, native: Native) -> Count:
    """Compile it and ask."""
    import jax
    import numpy

    function, shapes = native
    arguments = [jax.ShapeDtypeStruct(shape, numpy.float32) for shape in shapes]
    found = jax.jit(function).lower(*arguments).compile().cost_analysis()
    return Count(found["flops"], "FLOP")
