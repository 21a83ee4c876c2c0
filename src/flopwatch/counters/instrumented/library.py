"""Where the engine's shared object is."""

from __future__ import annotations

from pathlib import Path


def find() -> Path | None:
    """The built engine, or None."""
    return next(iter(sorted(Path(__file__).parent.glob("_engine*.so"))), None)
