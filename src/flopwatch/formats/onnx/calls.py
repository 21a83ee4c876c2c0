"""One node of a graph as an event: its arguments by their formal names, its place, and what cannot be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, estimate, lookup
from flopwatch.formats.onnx import contrib
from flopwatch.formats.onnx.inference import Call
from flopwatch.formats.onnx.values import TEXT, Value
from flopwatch.scope import Scope

FORWARD = "forward"
UNKNOWN_SHAPE = " (shape not known)"
INTEGERS = "onnx::(integers)"
"""Integer arithmetic on tensors of unknown shape: it is free whatever their shape is."""

_FEW = 64
_FLOATING = frozenset((0, 1, 10, 11, 14, 15, 16, 17, 18, 19, 20, 23, 24, 27, 28))


def name_of(call: Call) -> str:
    """The name of an operator: "onnx::Conv", "com.microsoft::Gelu"."""
    return f"{call.domain or 'onnx'}::{call.node.op_type}"


def op_of(call: Call, outputs: Sequence[Value], layer: str) -> Op:
    """The event of a call. Where shapes are missing that its work depends on, its name says so, and no formula has that name.

    Beside each argument that is a small tensor of known numbers stands "NAME_value", a list of them; "since_version"
    is the version of the operator.
    """
    name = name_of(call)
    scope = Scope(layer=layer, op=name, function=FORWARD)
    made = tuple(value.array for value in outputs)
    arguments = _arguments(call)
    values = [value for value in (*call.inputs, *outputs[:1]) if value is not None]
    if all(value.known or value.sequence or value.dtype == TEXT for value in values):
        return Op(name, arguments, made, scope)
    found = lookup(name)
    if found is None or isinstance(found, Free):
        return Op(name, arguments, made, scope)
    if not any(value.dtype in _FLOATING for value in values) and not _work(call, outputs, name):
        return Op(INTEGERS, {}, (), scope)
    return Op(name + UNKNOWN_SHAPE, arguments, made, scope)


def _work(call: Call, outputs: Sequence[Value], name: str) -> bool:
    """Whether the operator would do anything that counts if the sizes that are not known were 2."""
    inputs = [None if value is None else _supposed(value) for value in call.inputs]
    supposed = Call(call.node, call.domain, call.version, inputs, call.schema)
    op = Op(name, _arguments(supposed), tuple(_supposed(value).array for value in outputs))
    try:
        found = estimate(op)
    except Exception:  # the supposition need not make sense
        return True
    return not isinstance(found, Free) and not (isinstance(found, Work) and not found.tally)


def _supposed(value: Value) -> Value:
    if value.shape is None:
        return Value((2, 2), value.dtype, value.data)
    return Value(tuple(2 if size is None else size for size in value.shape), value.dtype, value.data)


def _arguments(call: Call) -> Mapping[str, Any]:
    found: dict[str, Any] = {"since_version": call.version}
    for name, default in _defaults(call.schema).items():
        found[name] = default
    for name, value in call.attributes.items():
        if not _is_graph(value):
            found[name] = _plain(value)
    names = _names(call)
    for place, name in enumerate(names):
        if name.endswith("*"):
            rest = call.inputs[place:]
            found[name[:-1]] = [array for value in rest if value is not None for array in arrays(value)]
            break
        value = call.inputs[place] if place < len(call.inputs) else None
        found[name] = _argument(value)
        if value is not None and value.data is not None and value.data.dtype.kind in "iubf" and value.data.size <= _FEW:
            found[f"{name}_value"] = value.data.reshape(-1).tolist()
    return found


def _argument(value: Value | None) -> Array | list[Array] | None:
    if value is None:
        return None
    return arrays(value) if value.sequence else value.array


def arrays(value: Value) -> list[Array]:
    """All tensors of a value that are known."""
    if value.items is not None:
        return [array for each in value.items for array in arrays(each)]
    return [] if value.array is None else [value.array]


def _names(call: Call) -> Sequence[str]:
    if call.schema is not None:
        formal = call.schema.inputs
        variadic = type(formal[-1].option).Variadic if formal else None
        return [each.name + ("*" if each.option == variadic else "") for each in formal]
    return contrib.names(call.kind) or ("inputs*",)


_DEFAULTS: dict[tuple[str, str, int], dict[str, Any]] = {}


def _defaults(schema: Any) -> Mapping[str, Any]:
    if schema is None:
        return {}
    key = (schema.domain, schema.name, schema.since_version)
    if key not in _DEFAULTS:
        from onnx import helper

        found: dict[str, Any] = {}
        for name, attribute in schema.attributes.items():
            default = attribute.default_value
            found[name] = _plain(helper.get_attribute_value(default)) if default.type else None
        _DEFAULTS[key] = found
    return _DEFAULTS[key]


def _plain(value: Any) -> Any:
    """An attribute as a plain value: text instead of bytes, a list instead of a protobuf container, no tensors."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (int, float, str)) or value is None:
        return value
    if hasattr(value, "DESCRIPTOR"):
        return None
    return [_plain(each) for each in value]


def _is_graph(value: Any) -> bool:
    return hasattr(value, "DESCRIPTOR") and value.DESCRIPTOR.name == "GraphProto"
