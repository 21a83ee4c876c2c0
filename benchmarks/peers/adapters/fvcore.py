"""fvcore: follows a trace of torch.jit; its "flops" are MAC."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "fvcore"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One trace."""
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(*built)
    total = analysis.total()
    return Count(total, "MAC", tuple(analysis.unsupported_ops()))
