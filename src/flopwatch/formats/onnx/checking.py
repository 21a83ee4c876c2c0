"""Whether the inputs of a node go together, where onnx's rules for shapes do not look: sizes that a file has as numbers may not fit.

An exporter that saw one size only may have written it down as a number; with another size such a model cannot run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flopwatch.formats.onnx.values import Value, elements

Check = Callable[[Sequence[tuple[int, ...]], Mapping[str, Any]], bool]


def fits(kind: str, inputs: Sequence[Value | None], outputs: Sequence[Value], attributes: Mapping[str, Any]) -> bool:
    """Whether an operator can take these inputs; yes where that is not known."""
    if kind == "Reshape":
        before = elements(inputs[0].shape) if inputs and inputs[0] is not None else None
        after = elements(outputs[0].shape) if outputs else None
        return before is None or after is None or before == after
    check = _CHECKS.get(kind)
    if check is None or len(inputs) < 2:
        return True
    given = [value for value in inputs[:2] if value is not None and value.known]
    return len(given) < 2 or check([value.sizes for value in given], attributes)


def _channels(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]) -> bool:
    data, weight = shapes
    return len(data) == len(weight) and data[1] == weight[1] * attributes.get("group", 1)


def _turned_channels(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]) -> bool:
    data, weight = shapes
    return len(data) == len(weight) and data[1] == weight[0]


def _inner(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]) -> bool:
    left, right = shapes
    first = left[0] if attributes.get("transA") else left[-1]
    return len(left) == len(right) == 2 and first == right[1 if attributes.get("transB") else 0]


def _features(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]) -> bool:
    data, weight = shapes
    return len(data) == len(weight) == 3 and data[2] == weight[2]


def _scale(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, Any]) -> bool:
    data, scale = shapes
    return len(data) < 2 or scale == (data[1],)


_CHECKS: Mapping[str, Check] = {
    "Conv": _channels,
    "ConvInteger": _channels,
    "ConvTranspose": _turned_channels,
    "Gemm": _inner,
    "RNN": _features,
    "GRU": _features,
    "LSTM": _features,
    "BatchNormalization": _scale,
    "InstanceNormalization": _scale,
}
