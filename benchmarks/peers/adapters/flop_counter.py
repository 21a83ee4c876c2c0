"""FlopCounterMode of PyTorch, as most use it: a model in evaluation mode, no gradients."""

from __future__ import annotations

from peers.adapters._torch import built as prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "torch"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward, or forward and backward."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model, arguments = built
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(case.train):
        result = model(*arguments)
        if case.train:
            result.sum().backward()
    return Count(counter.get_total_flops(), "FLOP")
