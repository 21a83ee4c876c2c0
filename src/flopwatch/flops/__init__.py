"""What executed work is worth: operations and datatypes, tallies of them, conventions that weigh them, and machine code read as such."""

from __future__ import annotations

from flopwatch.flops.classify import Classified, Counted, Free, Unknown, classify, classify_block
from flopwatch.flops.convention import ARITHMETIC, CONVENTIONS, PMU, Convention, Lanes
from flopwatch.flops.filter import opcode_filter
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.readings import ClassifiedReadings, classify_readings
from flopwatch.flops.tally import Count, Key, Tally

__all__ = [
    "ARITHMETIC",
    "CONVENTIONS",
    "PMU",
    "Classified",
    "ClassifiedReadings",
    "Convention",
    "Count",
    "Counted",
    "DType",
    "Free",
    "Key",
    "Lanes",
    "Operation",
    "Tally",
    "Unknown",
    "classify",
    "classify_block",
    "classify_readings",
    "opcode_filter",
]
