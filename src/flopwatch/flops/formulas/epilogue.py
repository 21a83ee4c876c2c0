"""What fused products do to each of their results at the end: an activation, or arithmetic with another tensor."""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work

# Operations for each element. Signs, comparisons and selections are free.
UNARY: dict[str, dict[str, int]] = {
    "none": {},
    "relu": {"minmax": 1},
    "relu6": {"minmax": 2},
    "hardtanh": {"minmax": 2},
    "leaky_relu": {"mul": 1},
    "tanh": {"transcendental": 1},
    # 1 / (1 + exp(-x)), and that times x.
    "sigmoid": {"transcendental": 1, "add": 1, "div": 1},
    "swish": {"transcendental": 1, "add": 1, "div": 1, "mul": 1},
    "silu": {"transcendental": 1, "add": 1, "div": 1, "mul": 1},
    # x · ½ · (1 + erf(x / √2)).
    "gelu": {"transcendental": 1, "add": 1, "mul": 3},
    # x · ½ · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).
    "gelu_tanh": {"transcendental": 1, "add": 2, "mul": 6},
}

BINARY: dict[str, dict[str, int]] = {
    "none": {},
    "add": {"add": 1},
    "sum": {"add": 1},
    "sub": {"add": 1},
    "mul": {"mul": 1},
    "div": {"div": 1},
}


def unary(numbers: Numbers | Array, name: str | None, elements: int) -> Work | None:
    """An activation of so many elements, by the name that kernels have for it; None for one that is not known."""
    return _of(numbers, UNARY.get(name or "none"), elements)


def binary(numbers: Numbers | Array, name: str | None, elements: int) -> Work | None:
    """Arithmetic of so many elements with another tensor; None for one that is not known."""
    return _of(numbers, BINARY.get(name or "none"), elements)


def _of(numbers: Numbers | Array, counts: dict[str, int] | None, elements: int) -> Work | None:
    return None if counts is None else work(numbers, **{name: count * elements for name, count in counts.items()})
