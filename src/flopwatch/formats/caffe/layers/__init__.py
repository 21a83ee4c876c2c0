"""Layer types of Caffe and of its common forks: for each a rule, bottoms' shapes in, tops and weights out."""

from __future__ import annotations

from flopwatch.formats.caffe.layers import data, dense, detection, forming, losses, pointwise, windows
from flopwatch.formats.caffe.layers.rules import RULES, Made, Rule, Shape, refuse, shown

_ALL = {each.lower(): each for each in (*RULES, *data.FEEDERS)}


def spelled(kind: str) -> str:
    """A type as Caffe spells it; viewers read "data" and "inner_product" as well, and many files were made for them."""
    return _ALL.get(kind.lower().replace("_", ""), kind)


FILES = (data, dense, detection, forming, losses, pointwise, windows)

__all__ = ["RULES", "Made", "Rule", "Shape", "refuse", "shown", "spelled"]
