"""Files that other programs wrote; each sibling hands over events, never FLOP.

Measurements are named as they are typed after --from (`NAMES`). Models are known by their suffix (`MODELS`): such a sibling has
`trace(path, emit, *, batch, shapes, dims) -> Traced`, which emits each operator of one inference and tells of the layers. `batch`
replaces the first size of the inputs, `shapes` are their whole shapes in the order of the file or by name, `dims` are sizes by name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath

from flopwatch.events import Traced

NAMES = ("perf",)

MODELS = {".prototxt": "caffe", ".caffemodel": "caffe", ".onnx": "onnx"}


def find(name: str) -> Callable[..., Traced] | None:
    """The `trace` of the format that a file's suffix tells; None for what is not the name of such a file."""
    sibling = MODELS.get(PurePath(name).suffix.lower())
    if sibling is None:
        return None
    found: Callable[..., Traced] = import_module(f"flopwatch.formats.{sibling}").trace
    return found
