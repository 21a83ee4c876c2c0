"""Small ONNX models for tests, and what flopwatch says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from flopwatch.events import Op, Traced
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.formulas.work import total
from flopwatch.formats.onnx import trace

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str | None] | None],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 21,
    types: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of some nodes; inputs are float unless `types` says otherwise."""
    infos = [
        helper.make_tensor_value_info(name, (types or {}).get(name, FLOAT), shape) for name, shape in inputs.items()
    ]
    graph = helper.make_graph(
        list(nodes),
        "tested",
        infos,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))


def seen(source: Any, **options: Any) -> tuple[list[Op], Traced]:
    """All operators of a model, and what else is told of it."""
    ops: list[Op] = []
    return ops, trace(source, ops.append, **options)


def work_of(source: Any, **options: Any) -> Work:
    """The work of a whole model; AssertionError if something in it is unknown."""
    works = []
    for op in seen(source, **options)[0]:
        found = estimate(op)
        assert not isinstance(found, Unknown), found
        if isinstance(found, Work):
            works.append(found * op.times)
    return total(works)


def unknown_of(source: Any, **options: Any) -> list[str]:
    """The unknown operators of a model."""
    return [found.name for op in seen(source, **options)[0] if isinstance(found := estimate(op), Unknown)]


def node_model(
    kind: str,
    inputs: Sequence[Sequence[int] | np.ndarray | None],
    *,
    types: Sequence[int] = (),
    outputs: int = 1,
    domain: str = "",
    opset: int = 21,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node whose inputs have these shapes, or are these arrays."""
    names = ["" if each is None else f"i{place}" for place, each in enumerate(inputs)]
    shapes = {
        name: list(each) for name, each in zip(names, inputs, strict=True) if name and not isinstance(each, np.ndarray)
    }
    arrays = {name: each for name, each in zip(names, inputs, strict=True) if isinstance(each, np.ndarray)}
    made = [f"o{place}" for place in range(outputs)]
    node = helper.make_node(kind, names, made, name="node", domain=domain, **attributes)
    chosen = {f"i{place}": kind for place, kind in enumerate(types)}
    domains = {domain: 5 if domain == "ai.onnx.ml" else 1} if domain else None
    return model([node], shapes, made, arrays, opset=opset, types=chosen, domains=domains)


def node_work(kind: str, inputs: Sequence[Sequence[int] | np.ndarray | None], **options: Any) -> Work:
    """The work of one node."""
    return work_of(node_model(kind, inputs, **options))


def is_free(kind: str, inputs: Sequence[Sequence[int] | np.ndarray | None], **options: Any) -> bool:
    """Whether one node is free."""
    return isinstance(estimate(seen(node_model(kind, inputs, **options))[0][0]), Free)
