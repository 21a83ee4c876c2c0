"""thop: hooks on modules by their class."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "thop"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward with hooks."""
    from thop import profile

    model, arguments = built
    macs, _ = profile(model, inputs=arguments, verbose=False)
    return Count(macs, "MAC")
