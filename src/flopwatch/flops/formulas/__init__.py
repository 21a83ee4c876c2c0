"""How much an operator computes, from the shapes that go in and come out; nothing is run.

The files here hold the mathematics, sizes in and `Work` out, and know of no framework; a folder or file for each dialect
(`aten/`, …) binds the names of its operators to them.
"""

from __future__ import annotations

from flopwatch.flops.formulas.registry import Formula, estimate, formula, free, known, lookup
from flopwatch.flops.formulas.work import Numbers, Work, numbers_of, total, work

__all__ = [
    "Formula",
    "Numbers",
    "Work",
    "estimate",
    "formula",
    "free",
    "known",
    "lookup",
    "numbers_of",
    "total",
    "work",
]
