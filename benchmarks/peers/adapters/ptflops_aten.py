"""ptflops with its other backend, which follows operators."""

from __future__ import annotations

from peers.adapters._torch import prepare
from peers.adapters.ptflops import counted
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "ptflops"

__all__ = ["VERSION_OF", "count", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward under a dispatch mode."""
    return counted(built, "aten")
