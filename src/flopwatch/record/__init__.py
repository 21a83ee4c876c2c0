"""One finished measurement or estimate: immutable, versioned, saved as JSON; every report can be made again from it."""

from __future__ import annotations

from flopwatch.record.parts import (
    Calls,
    Cell,
    EventCount,
    Layer,
    Memory,
    Ops,
    Process,
    Repeat,
    Shapes,
    Unknown,
    cells_of,
    ops_of,
    tally_of,
)
from flopwatch.record.record import SCHEMA, Record
from flopwatch.record.storing import decode, document, encode, load, save

__all__ = [
    "SCHEMA",
    "Calls",
    "Cell",
    "EventCount",
    "Layer",
    "Memory",
    "Ops",
    "Process",
    "Record",
    "Repeat",
    "Shapes",
    "Unknown",
    "cells_of",
    "decode",
    "document",
    "encode",
    "load",
    "ops_of",
    "save",
    "tally_of",
]
