"""calflops: replaces functions of PyTorch while the model runs; of FLOP and MAC, its MAC are taken."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "calflops"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward."""
    from calflops import calculate_flops

    model, arguments = built
    _, macs, _ = calculate_flops(
        model, args=list(arguments), print_results=False, print_detailed=False, output_as_string=False
    )
    return Count(macs, "MAC")
