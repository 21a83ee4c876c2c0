"""What fused products do to each of their results at the end: an activation, or arithmetic with another tensor."""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.work import Numbers, Work, work

# Names that kernels have for activations, and the row of the table of functions that says what one costs.
_FUNCTIONS = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_tanh",
    "hardswish": "hardswish",
    "leaky_relu": "leaky_relu",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "swish": "silu",
}
_LIMITS = {"relu": 1, "relu6": 2, "hardtanh": 2}


def unary(numbers: Numbers | Array, name: str | None, elements: int) -> Work | None:
    """An activation of so many elements, by the name that kernels have for it; None for one that is not known."""
    if name in (None, "", "none"):
        return Work()
    if name in _LIMITS:
        return work(numbers, minmax=_LIMITS[name] * elements)
    if name == "tanh":
        return work(numbers, transcendental=elements)
    return elementwise(_FUNCTIONS[name], numbers, elements) if name in _FUNCTIONS else None


def binary(numbers: Numbers | Array, name: str | None, elements: int) -> Work | None:
    """Arithmetic of so many elements with another tensor; None for one that is not known."""
    if name in (None, "", "none"):
        return Work()
    if name in ("add", "sum", "sub"):
        return work(numbers, add=elements)
    if name == "mul":
        return work(numbers, mul=elements)
    return work(numbers, div=elements) if name == "div" else None
