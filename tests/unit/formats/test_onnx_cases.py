"""The cases that onnx tests other implementations with, one or more for each operator: shapes come out as they do there."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("PIL")
# ruff: noqa: E402  # what follows needs onnx

from flopwatch.estimating import Estimation
from flopwatch.events import Op
from flopwatch.formats.onnx.entrance import entrance
from flopwatch.formats.onnx.loading import read
from flopwatch.formats.onnx.walking import Walk


@cache
def cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.dims) if hasattr(array, "dims") else np.shape(array)


def sizes_of(case: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Shapes of inputs that are tensors, and a size for each name that others leave open."""
    shapes: dict[str, tuple[int, ...]] = {}
    names: dict[str, int] = {}
    for info, array in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
        kind = info.type.WhichOneof("value")
        if kind == "tensor_type":
            shapes[info.name] = shape_of(array)
        elif kind == "sequence_type":
            names |= {
                dim.dim_param: 3 for dim in info.type.sequence_type.elem_type.tensor_type.shape.dim if dim.dim_param
            }
    given = {dim.dim_param for info in case.model.graph.input for dim in info.type.tensor_type.shape.dim}
    return shapes, {name: size for name, size in names.items() if name not in given}


@pytest.mark.slow
def test_shapes_are_those_of_the_reference() -> None:
    compared = 0
    for case in cases():
        shapes, dims = sizes_of(case)
        model = read(case.model)
        ops: list[Op] = []
        walk = Walk(model, entrance(model, dims=dims, shapes=shapes, batch=None), ops.append)
        outputs = walk.run()
        estimation = Estimation()
        for op in ops:
            estimation.see(op)
        for value, array in zip(outputs, case.data_sets[0][1], strict=True):
            if isinstance(array, list | dict) or array is None or value.sequence:
                continue
            if value.known:
                assert value.sizes == shape_of(array), case.name
                compared += 1
            if value.data is not None and not hasattr(array, "dims") and np.asarray(array).dtype.kind in "iub":
                assert (value.data == array).all(), case.name
    assert compared > 1_500
