"""Gradients of padding: padding itself only copies."""

from __future__ import annotations

from flopwatch.events import Op
from flopwatch.flops.formulas.accumulation import scattered
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, numbers_of


@formula(*(f"aten::{how}_pad{dims}d_backward" for how in ("reflection", "replication") for dims in (1, 2, 3)))
def padded_backward(op: Op) -> Work:
    """Each gradient is added to that of the element which the place was a copy of."""
    gradient = op.arguments["grad_output"]
    return scattered(numbers_of(gradient), gradient.size, "sum")
