"""Models in ONNX files: their operators with all shapes, found without running the model and without reading its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flopwatch.events import Traced
from flopwatch.formats.onnx.entrance import Shapes, entrance
from flopwatch.formats.onnx.loading import read
from flopwatch.formats.onnx.walking import Emit, Walk

__all__ = ["trace"]


def trace(
    source: Any,
    emit: Emit,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Shapes = (),
    batch: int | None = None,
) -> Traced:
    """Tell `emit` of each operator of a model, in order; `source` is the path of an ONNX file or a ModelProto.

    `dims` gives the sizes that the file names but leaves open ("batch", "sequence"; "x[0]" for one without a name). `shapes` are
    whole shapes by input ({"x": (1, 3, 224, 224)}) or in the order of the inputs, also in place of those in the file. `batch` is
    the first size of all inputs. Layers are named by the names of the nodes, those of nodes in functions and in bodies of loops
    with the name of the outer node in front ("loop.add"). UsageError if there is no valid model or if a size is missing.
    """
    model = read(source)
    walk = Walk(model, entrance(model, dims=dims or {}, shapes=shapes, batch=batch), emit)
    walk.run()
    notes = [*walk.notes]
    if model.missing and walk.shapeless:
        notes.append(f"Shapes may depend on numbers in files that are not there: {', '.join(model.missing)}.")
    opset = model.opsets.get("")
    how = f"from the graph of {model.name}" + (f" (opset {opset})" if opset else "")
    peak = walk.activations
    return Traced(walk.parts, how, tuple(notes), peak.peak, peak.at, walk.parameters, walk.buffers)
