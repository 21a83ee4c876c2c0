"""Follow a graph from node to node: find each one's shapes, tell of it as an event, and note where parameters go in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.events import Op, Part
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import lookup
from flopwatch.formats.onnx import calls, control, sequences
from flopwatch.formats.onnx.entrance import Entrance
from flopwatch.formats.onnx.inference import Call, Inference, schema_of
from flopwatch.formats.onnx.loading import Model, complaint
from flopwatch.formats.onnx.memory import Activations
from flopwatch.formats.onnx.values import BOOL, INT64, NAMES, TEXT, Value, bytes_of, elements, of_type

Emit = Callable[[Op], None]

DEEPEST = 100
"""Functions and graphs within each other; more of them call themselves."""


STATISTICS = {"BatchNormalization": (3, 4)}
"""Inputs that hold what was seen in training: they are nobody's parameters."""


@dataclass(slots=True)
class Frame:
    """A graph or function that is being followed: its values, on top of those around it.

    `declared` are the types that the file gives for its values, `bindings` the attributes of a call of a function. `top` is the
    graph of the whole model.
    """

    opsets: Mapping[str, int]
    prefix: str = ""
    around: Frame | None = None
    values: dict[str, Value] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict)
    bindings: Mapping[str, Any] = field(default_factory=dict)
    top: bool = False

    def find(self, name: str) -> Value | None:
        """A value by its name, from the graphs around this one too."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.around
        return None


@dataclass(slots=True)
class Held:
    """A constant: how many elements and bytes it has, and whether it passes for a parameter."""

    elements: int
    bytes: int


class Walk:
    """Follows a model; `emit` gets its operators in order. `parts` and `notes` are complete when `run` is done.

    `shapeless` is whether there was an operator of unknown shape.
    """

    def __init__(self, model: Model, entrance: Entrance, emit: Emit) -> None:
        self.model = model
        self.notes: dict[str, None] = {}
        self.parameters = self.buffers = 0
        self.shapeless = False
        self.inference = Inference(model.proto.ir_version)
        self._entrance = entrance
        self._emit = emit
        self._parts: dict[str, list[Any]] = {}
        self._constants: dict[str, Held] = {}
        self._functions = {(each.domain, each.name, _overload(each)): each for each in model.proto.functions}
        self._depth = 0
        self.activations = Activations(model.proto.graph)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The layers, in the order in which they come."""
        return tuple(Part(*part) for part in self._parts.values())

    def run(self) -> list[Value]:
        """Follow the whole model; gives the values of its outputs."""
        return self.graph(self.model.proto.graph, Frame(self.model.opsets, top=True), self._entrance.values)

    def emit(self, op: Op) -> None:
        """Tell of an operator. UsageError if it cannot be counted because the model is not valid."""
        self.shapeless |= op.name.endswith(calls.UNKNOWN_SHAPE)
        try:
            self._emit(op)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            seen = complaint(self.model.proto)
            if not seen:
                raise
            raise UsageError(f"{self.model.name} is not a valid model.", seen=seen) from error

    @contextmanager
    def aside(self) -> Iterator[list[Op]]:
        """Within, operators are put into the list that comes out instead of being told of."""
        held: list[Op] = []
        before, self._emit = self._emit, held.append
        try:
            yield held
        finally:
            self._emit = before

    def graph(self, graph: Any, frame: Frame, inputs: Mapping[str, Value]) -> list[Value]:
        """Follow a graph whose inputs have these values."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise UsageError(f"{self.model.name} has a function or graph that contains itself.")
        for tensor in graph.initializer:
            self.hold(frame, tensor.name, self.model.constant(tensor, frame.prefix + tensor.name))
        for sparse in graph.sparse_initializer:
            value = Value(
                tuple(sparse.dims), sparse.values.data_type, roots=frozenset((frame.prefix + sparse.values.name,))
            )
            self.hold(frame, sparse.values.name, value)
        frame.values.update(inputs)
        if not self._entrance.changed:
            frame.declared.update((each.name, each.type) for each in (*graph.value_info, *graph.output))
        for node in graph.node:
            self.node(node, frame)
        self._depth -= 1
        return [self._output(each.name, frame) for each in graph.output]

    def hold(self, frame: Frame, name: str, value: Value) -> None:
        """Enter a constant of the file."""
        frame.values[name] = value
        size = elements(value.shape) or 0
        parameter = value.dtype not in (INT64, BOOL, TEXT) and value.dtype in NAMES
        for root in value.roots or ():
            self._constants.setdefault(root, Held(size, bytes_of(value)) if parameter else Held(0, 0))

    def _output(self, name: str, frame: Frame) -> Value:
        value = frame.find(name)
        if value is None:
            raise self._invalid(f"no node makes its output {name!r}")
        return value

    def _invalid(self, what: str) -> UsageError:
        return UsageError(
            f"{self.model.name} is not a valid model: {what}.",
            seen=complaint(self.model.proto),
            todo="Its nodes must stand in an order in which each finds its inputs made.",
        )

    def node(self, node: Any, frame: Frame) -> None:
        """Follow one node."""
        node = bound(node, frame.bindings)
        layer = self._layer(node, frame)
        inputs: list[Value | None] = []
        for name in node.input:
            value = frame.find(name) if name else None
            if name and value is None:
                raise self._invalid(f"{node.op_type} {layer!r} takes {name!r}, which no node before it makes")
            inputs.append(value)
        domain = "" if node.domain == "ai.onnx" else node.domain
        function = self._functions.get((node.domain, node.op_type, _overload(node)))
        if function is not None:
            outputs = self._call(function, node, inputs, frame, layer)
        else:
            outputs = self._primitive(node, domain, inputs, frame, layer)
        made = {name: value for name, value in zip(node.output, outputs, strict=False) if name}
        frame.values.update(made)
        if frame.top:
            found = lookup(calls.name_of(Call(node, domain, 0, inputs)))
            view = isinstance(found, Free) and not found.moves
            self.activations.step(node, layer, made, view=view)

    def _primitive(self, node: Any, domain: str, inputs: list[Value | None], frame: Frame, layer: str) -> list[Value]:
        version = frame.opsets.get(domain, 1)
        schema = schema_of(node.op_type, version, domain)
        call = Call(node, domain, schema.since_version if schema is not None else version, inputs, schema)
        self._part(layer, call)
        if not domain and node.op_type in control.KINDS:
            return self._declared(node, control.follow(self, call, frame, layer), frame)
        if not domain and node.op_type in ("Constant", "ConstantOfShape"):
            outputs = self._constant(call, frame, layer)
        elif not domain and node.op_type in sequences.KINDS:
            outputs = sequences.outputs(call)
        else:
            outputs = self.inference.outputs(call, frame.opsets)
        outputs = self._declared(node, outputs, frame)
        self.emit(calls.op_of(call, outputs, layer))
        return outputs

    def _declared(self, node: Any, outputs: Sequence[Value], frame: Frame) -> list[Value]:
        """The outputs, with what the file says of those whose shapes could not be found."""
        found = []
        for name, value in zip(node.output, [*outputs, *[Value()] * (len(node.output) - len(outputs))], strict=False):
            if not value.known and not value.sequence and name in frame.declared:
                declared = of_type(frame.declared[name], self._entrance.dims.get)
                if declared.known or value.shape is None:
                    value = Value(declared.shape, value.dtype or declared.dtype, value.data, value.roots)
            found.append(value)
        return found

    def _constant(self, call: Call, frame: Frame, layer: str) -> list[Value]:
        root = frame.prefix + call.node.output[0]
        tensor = next((each.t for each in call.node.attribute if each.name == "value"), None)
        if call.node.op_type == "Constant" and tensor is not None:
            value = self.model.constant(tensor, root)
        else:
            value = self.inference.outputs(call, frame.opsets)[0]
            made = call.node.op_type == "Constant" or (call.inputs[0] is not None and call.inputs[0].roots is not None)
            value = Value(value.shape, value.dtype, value.data, frozenset((root,)) if made else None)
        if value.roots and value.known:
            self._constants.setdefault(root, Held(0, 0))
            if value.shape and value.dtype in NAMES and value.dtype not in (INT64, BOOL):
                self._constants[root] = Held(elements(value.shape) or 0, bytes_of(value))
        return [value]

    def _call(self, function: Any, node: Any, inputs: Sequence[Value | None], frame: Frame, layer: str) -> list[Value]:
        opsets = {("" if each.domain == "ai.onnx" else each.domain): each.version for each in function.opset_import}
        bindings = {each.name: each for each in function.attribute_proto}
        bindings.update({each.name: each for each in node.attribute})
        inner = Frame({**frame.opsets, **opsets}, f"{layer}.", bindings=bindings)
        for name, value in zip(function.input, [*inputs, *[None] * len(function.input)], strict=False):
            if value is not None:
                inner.values[name] = value
        self._depth += 1
        if self._depth > DEEPEST:
            raise UsageError(f"{self.model.name} has a function that calls itself: {function.name}.")
        absent = set(function.input) - set(inner.values)
        for each in function.node:
            kept = each
            if absent.intersection(each.input):
                kept = type(each)()
                kept.CopyFrom(each)
                kept.input[:] = ["" if name in absent else name for name in each.input]
            self.node(kept, inner)
        self._depth -= 1
        return [self._output(name, inner) for name in function.output]

    def _layer(self, node: Any, frame: Frame) -> str:
        own: str = node.name or next((name for name in node.output if name), node.op_type)
        return frame.prefix + own

    def _part(self, layer: str, call: Call) -> None:
        part = self._parts.setdefault(layer, [layer, call.node.op_type, 0, 0])
        if all(value is None or value.roots is not None for value in call.inputs):
            return  # a constant made of constants: they belong to the layer that uses it
        statistics = STATISTICS.get(call.kind, ())
        for place, value in enumerate(call.inputs):
            for root in sorted(value.roots or ()) if value is not None else ():
                held = self._constants.pop(root, None)
                if held is None:
                    continue
                if place in statistics:
                    self.buffers += held.bytes
                    continue
                part[2] += held.elements
                part[3] += held.bytes
                self.parameters += held.bytes


def bound(node: Any, bindings: Mapping[str, Any]) -> Any:
    """A node of a function with the attributes of the call filled in; those that the call leaves out are left out."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    filled = type(node)()
    filled.CopyFrom(node)
    del filled.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            filled.attribute.append(each)
        elif each.ref_attr_name in bindings:
            given = filled.attribute.add()
            given.CopyFrom(bindings[each.ref_attr_name])
            given.name = each.name
    return filled


def _overload(proto: Any) -> str:
    return str(getattr(proto, "overload", ""))
