"""DeepSpeed's FlopsProfiler: replaces functions of PyTorch while the model runs; of FLOP and MAC, its MAC are taken."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "deepspeed"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward after one to warm up, its default."""
    from deepspeed.profiling.flops_profiler import get_model_profile

    model, arguments = built
    _, macs, _ = get_model_profile(model, args=list(arguments), print_profile=False, detailed=False, as_string=False)
    return Count(macs, "MAC")
