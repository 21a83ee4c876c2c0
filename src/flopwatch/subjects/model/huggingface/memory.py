"""Whether there is memory for the weights of a model, asked before they are made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from flopwatch.errors import CannotMeasureError

MEMINFO = Path("/proc/meminfo")


def check(model: Any) -> None:
    """Raise CannotMeasureError if a model that is on meta would not fit into the memory that is free here."""
    needed = sum(each.numel() * each.element_size() for each in (*model.parameters(), *model.buffers()))
    free = available()
    if free is not None and needed > free:
        raise CannotMeasureError(
            f"{type(model).__name__} cannot be run here.",
            seen=f"Its weights take {needed / 1e9:,.1f} GB of memory, {free / 1e9:,.1f} GB are free.",
            todo="Estimate it without --measure; or take a config with fewer layers.",
        )


def available() -> int | None:
    """Bytes that programs can still get, None where the system does not say."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None
