"""Live hooks: each sibling pushes the layers and operators of one framework onto `Scopes`, and knows of no counter.

A sibling is imported only by whoever measures a model of its framework; `import flopwatch` loads none.
"""

from __future__ import annotations

from flopwatch.events import Part, Traced

__all__ = ["BACKWARD", "FORWARD", "NAMES", "OPTIMIZER", "OUTSIDE", "ROOT", "Part", "Traced"]

NAMES = ("torch", "chainer")

OUTSIDE = "(outside any module)"
"""The layer of work that no module of the model did: loss, optimizer, input preparation."""

ROOT = "(model)"
"""The layer of the model's own work, done by none of its parts."""

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
FUNCTIONS = (FORWARD, BACKWARD, OPTIMIZER)
"""The values of the function axis."""
