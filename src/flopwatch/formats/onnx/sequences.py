"""Lists of tensors and values that may be missing: what comes out of the operators that put them together and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flopwatch.formats.onnx.inference import Call
from flopwatch.formats.onnx.values import BOOL, INT64, Value, common, merged, of_data

Rule = Callable[[Call], list[Value]]


def outputs(call: Call) -> list[Value]:
    """The outputs of such an operator."""
    return KINDS[call.node.op_type](call)


def _input(call: Call, place: int) -> Value | None:
    return call.inputs[place] if place < len(call.inputs) else None


def _number(value: Value | None) -> int | None:
    return int(value.data.reshape(-1)[0]) if value is not None and value.data is not None else None


def _construct(call: Call) -> list[Value]:
    return [Value(items=tuple(value for value in call.inputs if value is not None))]


def _empty(call: Call) -> list[Value]:
    return [Value(items=())]


def _insert(call: Call) -> list[Value]:
    into, new, place = _input(call, 0), _input(call, 1), _number(_input(call, 2))
    if into is None or new is None:
        return [Value()]
    if into.items is None or (place is None and _input(call, 2) is not None):
        return [Value(element=common([merged(into), new]))]
    where = len(into.items) if place is None else place % (len(into.items) + 1)
    return [Value(items=(*into.items[:where], new, *into.items[where:]))]


def _erase(call: Call) -> list[Value]:
    source, place = _input(call, 0), _number(_input(call, 1))
    if source is None or source.items is None or (place is None and _input(call, 1) is not None):
        return [Value(element=merged(source or Value()))]
    where = (-1 if place is None else place) % max(1, len(source.items))
    return [Value(items=source.items[:where] + source.items[where + 1 :])]


def _at(call: Call) -> list[Value]:
    source, place = _input(call, 0), _number(_input(call, 1))
    if source is None:
        return [Value()]
    if source.items is not None and place is not None and -len(source.items) <= place < len(source.items):
        return [source.items[place]]
    return [merged(source)]


def _length(call: Call) -> list[Value]:
    import numpy as np

    source = _input(call, 0)
    known = source is not None and source.items is not None
    return [of_data(np.array(len(source.items or ()), dtype=np.int64)) if known and source else Value((), INT64)]


def _concat(call: Call) -> list[Value]:
    source = _input(call, 0)
    attributes = call.attributes
    if source is None or not source.items or any(value.shape is None for value in source.items):
        return [Value()]
    shapes: list[list[int | None]] = [list(value.shape or ()) for value in source.items]
    dtype = source.items[0].dtype
    rank = len(shapes[0])
    if attributes.get("new_axis", 0):
        axis = attributes["axis"] % (rank + 1)
        shape = (*shapes[0][:axis], len(shapes), *shapes[0][axis:])
        return [Value(shape, dtype)]
    axis = attributes["axis"] % rank
    sizes = [shape[axis] for shape in shapes]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    return [Value((*shapes[0][:axis], total, *shapes[0][axis + 1 :]), dtype)]


def _split(call: Call) -> list[Value]:
    source, lengths = _input(call, 0), _input(call, 1)
    attributes = call.attributes
    if source is None or source.shape is None:
        return [Value()]
    axis = attributes.get("axis", 0) % len(source.shape)
    size = source.shape[axis]
    if size is None or (lengths is not None and lengths.data is None):
        return [Value(element=_cut(source, axis, None))]
    if lengths is None:
        keep = attributes.get("keepdims", 1)
        piece = _cut(source, axis, 1) if keep else Value(source.shape[:axis] + source.shape[axis + 1 :], source.dtype)
        return [Value(items=(piece,) * size)]
    given: Any = lengths.data.reshape(-1).tolist()
    if lengths.shape == ():
        step = max(1, given[0])
        given = [min(step, size - start) for start in range(0, size, step)]
    return [Value(items=tuple(_cut(source, axis, each) for each in given))]


def _cut(source: Value, axis: int, size: int | None) -> Value:
    shape = source.shape or ()
    return Value((*shape[:axis], size, *shape[axis + 1 :]), source.dtype)


def _optional(call: Call) -> list[Value]:
    return [_input(call, 0) or Value(optional=True)]


def _element(call: Call) -> list[Value]:
    value = _input(call, 0)
    return [Value() if value is None else replace(value, optional=False)]


def _has(call: Call) -> list[Value]:
    import numpy as np

    value = _input(call, 0)
    if value is not None and value.optional:
        return [Value((), BOOL)]
    return [of_data(np.array(value is not None))]


KINDS: dict[str, Rule] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
