"""torchprofile: follows a trace of torch.jit, and warns of each operator that it has no handler for."""

from __future__ import annotations

import warnings

from peers.adapters._torch import prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "torchprofile"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One trace."""
    from torchprofile import profile_macs

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        macs = profile_macs(*built)
    said = sorted({str(each.message) for each in caught if "handler" in str(each.message)})
    return Count(macs, "MAC", tuple(said))
