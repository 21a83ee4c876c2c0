"""Which output of the head stands for which class: the classes' own order, or their places among ImageNet's thousand."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec

from flopwatch.errors import UsageError
from flopwatch.training.networks import IMAGENET

CONTAMINATED = (
    "the weights were trained on ImageNet; 3791 of the 3925 validation pictures of Imagenette are from its training part, "
    "so this is an accuracy on known pictures"
)
"""Counted from the file names of Imagenette v2."""


def head_and_labels(
    classes: Sequence[str], wanted: int | None, indices: Sequence[int] = ()
) -> tuple[int, tuple[int, ...], str]:
    """The width of the head, the output that stands for each class, and a note on it (empty: nothing special).

    `wanted` is the width that was asked for, `indices` are the classes' places in ImageNet where the data knows them.
    Raises UsageError for a head that has no place for all classes.
    """
    if wanted is None or wanted == len(classes):
        return len(classes), tuple(range(len(classes))), ""
    if wanted < len(classes):
        raise UsageError(
            f"A head of {wanted} outputs cannot tell the {len(classes)} classes of the data apart.",
            todo="Leave --classes out, or give a larger number.",
        )
    if wanted == IMAGENET:
        places = tuple(indices) or _imagenet(classes)
        if places is not None:
            return wanted, places, "labels are the classes' places among the 1000 of ImageNet"
    return wanted, tuple(range(len(classes))), f"head of {wanted} outputs, of which {len(classes)} have pictures"


def _imagenet(classes: Sequence[str]) -> tuple[int, ...] | None:
    """The places of classes that are named by WordNet ids, or by ImageNet's English names; None if one is neither."""
    known = _synsets() | _english()
    return tuple(known[name] for name in classes) if all(name in known for name in classes) else None


def _synsets() -> dict[str, int]:
    if find_spec("timm") is None:
        return {}
    path = files("timm.data").joinpath("_info", "imagenet_synsets.txt")
    return {name: place for place, name in enumerate(path.read_text().split())} if path.is_file() else {}


def _english() -> dict[str, int]:
    from torchvision.models import ResNet18_Weights

    names = ResNet18_Weights.DEFAULT.meta["categories"]
    # Two classes are called crane and two maillot: such names tell nothing.
    return {name: place for place, name in enumerate(names) if names.count(name) == 1}
