"""An ONNX file, or a model that is loaded already: read without its weights, and refused in a sentence if it is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.formats.onnx.values import FEW, Value

SIZES = (6, 7)
"""Element types that sizes have: int32 and int64."""
_INSTALL = "Install it: pip install 'flopwatch[onnx]'."


@dataclass(slots=True)
class Model:
    """A model as read: `proto` is the ModelProto, `folder` where the data of its tensors may lie in files of their own.

    `opsets` is the version of each domain. `missing` collects the files in which sizes were looked for in vain.
    """

    proto: Any
    name: str
    folder: Path | None
    opsets: Mapping[str, int]
    missing: dict[str, None] = field(default_factory=dict)

    def constant(self, tensor: Any, root: str) -> Value:
        """The value of an initialiser or of a constant's tensor; the numbers of a large one are left where they are."""
        shape = tuple(tensor.dims)
        value = Value(shape, tensor.data_type, roots=frozenset((root,)))
        size = 1
        for dim in shape:
            size *= dim
        if size > (FEW if tensor.data_type in SIZES else 1024) or tensor.data_type == 8:
            return value
        data = self._data(tensor)
        return value if data is None else Value(shape, tensor.data_type, data, value.roots)

    def _data(self, tensor: Any) -> Any:
        from onnx import TensorProto, numpy_helper

        if tensor.data_location != TensorProto.EXTERNAL:
            try:
                return numpy_helper.to_array(tensor)
            except ValueError as error:
                raise UsageError(
                    f"{self.name} is damaged: the tensor {tensor.name!r} does not hold what it says.", seen=f"{error}."
                ) from error
        from onnx.external_data_helper import load_external_data_for_tensor

        where = next((entry.value for entry in tensor.external_data if entry.key == "location"), "?")
        copied = TensorProto()
        copied.CopyFrom(tensor)
        try:
            load_external_data_for_tensor(copied, str(self.folder or ""))
            return numpy_helper.to_array(copied)
        except (
            Exception
        ) as error:  # what numpy and the system say, or onnx.checker.ValidationError, which is made in C++
            known = isinstance(error, (OSError, ValueError, RuntimeError)) or type(error).__name__ == "ValidationError"
            if not known:
                raise
            if tensor.data_type in SIZES:
                self.missing[where] = None
            return None


def read(source: Any) -> Model:
    """The model in a file, or a ModelProto as it is; the files of weights beside it are not opened.

    UsageError if onnx is not installed, or if there is no model that can be understood.
    """
    try:
        import onnx
    except ImportError as error:
        raise UsageError("onnx is not installed.", todo=_INSTALL) from error
    if isinstance(source, onnx.ModelProto):
        return _checked(source, source.graph.name or "the model", None)
    path = Path(source)
    name = str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{name!r} cannot be read: {error.strerror}.") from error
    todo = "Give a file as onnx.save or torch.onnx.export wrote it."
    if not content:
        raise UsageError(f"{name!r} is empty.", todo=todo)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except Exception as error:  # google.protobuf.message.DecodeError, and what its C++ half makes of it
        raise UsageError(
            f"{name!r} is no ONNX model, or only the first part of one.", seen=f"{error}.", todo=todo
        ) from error
    if not proto.HasField("graph") or not proto.ir_version:
        raise UsageError(f"{name!r} is no ONNX model: it has no graph or no IR version.", todo=todo)
    return _checked(proto, repr(name), path.parent)


def _checked(proto: Any, name: str, folder: Path | None) -> Model:
    import onnx

    newer = f"The installed onnx {onnx.__version__} reads"
    todo = "Update it: pip install -U onnx."
    if proto.ir_version > onnx.IR_VERSION:
        raise UsageError(
            f"{name} has IR version {proto.ir_version}.", seen=f"{newer} up to {onnx.IR_VERSION}.", todo=todo
        )
    opsets = {_domain(each.domain): each.version for each in proto.opset_import}
    if "" not in opsets and proto.ir_version < 3:
        opsets[""] = 1
    latest = onnx.defs.onnx_opset_version()
    if opsets.get("", 0) > latest:
        raise UsageError(f"{name} is written in opset {opsets['']}.", seen=f"{newer} up to {latest}.", todo=todo)
    if not proto.graph.node:
        raise UsageError(f"{name} has a graph without any node.", todo="Give a model that computes something.")
    return Model(proto, name, folder, opsets)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def complaint(proto: Any) -> str:
    """What onnx's own checker has to say against a model, in one line; "" if it finds nothing."""
    import onnx

    try:
        onnx.checker.check_model(proto)
    except Exception as error:  # ValidationError, or ValueError for a model that is too large to check
        return str(error).strip().partition("\n")[0].rstrip(".") + "."
    return ""
