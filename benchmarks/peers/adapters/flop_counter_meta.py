"""FlopCounterMode on meta tensors: nothing is computed, and other operators run."""

from __future__ import annotations

from peers.adapters._torch import prepare as _prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "torch"


def prepare(case: Case) -> Built:
    """The model and its arguments without data."""
    model, arguments = _prepare(case)
    return model.to("meta"), tuple(argument.to("meta") for argument in arguments)


def count(case: Case, built: Built) -> Count:
    """One forward."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model, arguments = built
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*arguments)
    return Count(counter.get_total_flops(), "FLOP")
