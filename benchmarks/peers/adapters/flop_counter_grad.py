"""FlopCounterMode with gradients enabled: other operators run then."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "torch"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward in training mode."""
    from torch.utils.flop_counter import FlopCounterMode

    model, arguments = built
    model.train()
    with FlopCounterMode(display=False) as counter:
        model(*arguments)
    return Count(counter.get_total_flops(), "FLOP")
