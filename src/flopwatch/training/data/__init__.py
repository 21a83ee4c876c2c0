"""Where training pictures come from: folders, Imagenette, sets that are made here; and what is wrong with them.

    find           a folder or a name -> DataSet
    check          a folder -> Report: every file that will make trouble, by name
    treated        a DataSet and a Report -> the DataSet without bad files, or a refusal
    images         items of a DataSet -> a data set of PyTorch, prepared as in the ImageNet example
    normalised     bytes that `images(normalise=False)` gave -> floats, on their device
    contamination  what to say beside the accuracy of weights trained on ImageNet

Nothing here loads PyTorch, NumPy or Pillow before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from flopwatch.training.data.complaints import Complaint, Kind, Report, Severity
from flopwatch.training.data.finding import find
from flopwatch.training.data.imagenette import contamination
from flopwatch.training.data.sets import DataSet, Item, Progress

if TYPE_CHECKING:
    from flopwatch.training.data.doctor import check, treated
    from flopwatch.training.data.loading import Images, images, normalised
    from flopwatch.training.data.pictures import BadPicture

__all__ = [
    "BadPicture",
    "Complaint",
    "DataSet",
    "Images",
    "Item",
    "Kind",
    "Progress",
    "Report",
    "Severity",
    "check",
    "contamination",
    "find",
    "images",
    "normalised",
    "treated",
]
# These need Pillow, the last three PyTorch: loaded when somebody asks for them.
_LATER = {
    "check": "doctor",
    "treated": "doctor",
    "BadPicture": "pictures",
    "Images": "loading",
    "images": "loading",
    "normalised": "loading",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
