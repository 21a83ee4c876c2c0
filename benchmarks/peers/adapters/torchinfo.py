"""torchinfo: "mult-adds" by parameters and sizes of outputs."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "torchinfo"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward with hooks."""
    from torchinfo import summary

    model, arguments = built
    # A list of one is taken apart along its batch.
    data = arguments[0] if len(arguments) == 1 else list(arguments)
    found = summary(model, input_data=data, verbose=0)
    return Count(found.total_mult_adds, "MAC")
