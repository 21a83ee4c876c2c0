"""Netscope: what its pages show for the networks that they come with, for one image; MACC hold normalisations and scales, too."""

from __future__ import annotations

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.cases import Case

VERSION_OF = ""

# Its GoogLeNet is for an image of another size, and is left out.
SHOWN = {
    "AlexNet (Caffe)": 726_791_936,
    "VGG-16 (Caffe)": 15_470_264_320,
    "ResNet-50 v1 (Caffe)": 3_868_560_384,
    "ResNet-152 v1 (Caffe)": 11_304_442_880,
}


def prepare(case: Case) -> int:
    """The figure."""
    if case.name not in SHOWN:
        raise NotForThisError
    return SHOWN[case.name]


def count(case: Case, shown: int) -> Count:
    """The figure."""
    return Count(shown, "MAC")
