"""onnx-tool, on a model that PyTorch exported: its "MACs" are weighted scalar operations (an exp is 32 of them)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from peers.adapters._torch import prepare as _prepare
from peers.answers import Count
from peers.cases import Case

VERSION_OF = "onnx-tool"


def prepare(case: Case) -> str:
    """The name of an ONNX file; a model that cannot be exported is no fault of the counter."""
    import torch

    from peers.adapters import NotForThisError

    model, arguments = _prepare(case)
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    try:
        with torch.no_grad():
            torch.onnx.export(model, arguments, str(path), dynamo=True, external_data=False, verbose=False)
    except Exception as error:
        raise NotForThisError from error
    return str(path)


def count(case: Case, path: str) -> Count:
    """Shapes, then the profile of each node."""
    import onnx_tool

    model = onnx_tool.loadmodel(path, {"verbose": False})
    model.graph.graph_reorder_nodes()
    model.graph.shape_infer(None)
    model.graph.profile()
    return Count(round(model.graph.macs[0]), "MAC")
