"""Where a piece of work happened: process, thread, layer, op, function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """One place in a program; an empty field means that the place is not known on that axis."""

    process: str = ""
    thread: str = ""
    layer: str = ""
    op: str = ""
    function: str = ""
