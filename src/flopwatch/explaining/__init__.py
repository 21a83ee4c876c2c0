"""Say why a measurement and an estimate of the same model differ: causes with their sizes, which add up to the gap.

A cause is named only where shapes predict it or executed instructions show it. What is left over has no name: it is reported
as unexplained.
"""

from __future__ import annotations

from flopwatch.explaining.causes import CAUSES, Explanation, Found, Part, Place, Row
from flopwatch.explaining.explain import explain

__all__ = ["CAUSES", "Explanation", "Found", "Part", "Place", "Row", "explain"]
