"""Live hooks: each sibling pushes the layers and operators of one framework onto `Scopes`, and knows of no counter.

A sibling is imported only by whoever measures a model of its framework; `import flopwatch` loads none.
"""

from __future__ import annotations

from typing import NamedTuple

NAMES = ("torch", "chainer")

OUTSIDE = "(outside any module)"
"""The layer of work that no module of the model did: loss, optimizer, input preparation."""

ROOT = "(model)"
"""The layer of the model's own work, done by none of its parts."""

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
FUNCTIONS = (FORWARD, BACKWARD, OPTIMIZER)
"""The values of the function axis."""


class Part(NamedTuple):
    """One layer of a model: its path, its class, the parameters that it holds itself, and their bytes."""

    name: str
    kind: str
    params: int
    bytes: int = 0


class Traced(NamedTuple):
    """What following a model from operator to operator told, beside its operators.

    `how` says in words how it was followed ("on meta tensors"). Bytes: of activations at their peak, which was in layer `at`; of
    parameters and of buffers; 0 activations stand for "not known".
    """

    parts: tuple[Part, ...]
    how: str = ""
    notes: tuple[str, ...] = ()
    activations: int = 0
    at: str = ""
    parameters: int = 0
    buffers: int = 0
