"""The command line that the benchmarks count with."""

from __future__ import annotations

import sys
from pathlib import Path


def stat(record: Path, *rest: str) -> tuple[str, ...]:
    """A command line that counts once."""
    return (
        sys.executable,
        "-m",
        "flopwatch",
        "stat",
        "--counter",
        "instrumented",
        "--no-time",
        "--json",
        "-o",
        str(record),
        *rest,
    )
