"""Where training pictures come from: folders, Imagenette, sets that are made here; and what is wrong with them.

    find        a folder or a name -> DataSet
    check       a folder -> Report: every file that will make trouble, by name
    treated     a DataSet and a Report -> the DataSet without bad files, or a refusal
    images      items of a DataSet -> a data set of PyTorch, prepared as in the ImageNet example

Nothing here loads PyTorch, NumPy or Pillow before a function needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flopwatch.training.data.finding import find
from flopwatch.training.data.sets import DataSet, Item, Progress

if TYPE_CHECKING:
    from flopwatch.training.data.loading import Images, images

__all__ = ["DataSet", "Images", "Item", "Progress", "find", "images"]


def __getattr__(name: str) -> Any:
    if name in ("Images", "images"):
        from flopwatch.training.data import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
