"""What comes out of one node: by onnx's own rules for shapes, and for small constants by running onnx's reference of the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.formats.onnx import contrib_shapes
from flopwatch.formats.onnx.checking import fits
from flopwatch.formats.onnx.values import BOOL, FEW, FLOAT, Value, elements, of_data, of_type, roots_of, type_of

# Their results are different each time, or need more than their inputs.
_NOT_FOLDED = (
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Dropout ImageDecoder StringNormalizer "
    "TfIdfVectorizer RegexFullMatch StringSplit StringConcat"
)
_FEW_FLOATS = 1024
_FLOATING = frozenset((1, 10, 11, 16))
# The first versions of these came without a rule for shapes; their result is as their first input.
_ALIKE = (
    "Add Sub Mul Div Max Min Mean Sum Log Exp Sqrt Reciprocal Abs Neg Ceil Floor Clip Sigmoid Tanh Relu LeakyRelu PRelu Elu Selu "
    "HardSigmoid Dropout Cast BatchNormalization InstanceNormalization GroupNormalization"
)
_SCALED = ("Imputer", "Normalizer", "Scaler")
"""Of ai.onnx.ml, without rules for shapes: their result is as their input, in float32."""


@dataclass(slots=True)
class Call:
    """One node as it is called: attributes that stood for a function's arguments are filled in."""

    node: Any
    domain: str
    version: int
    inputs: Sequence[Value | None]
    schema: Any = None

    @property
    def kind(self) -> str:
        """The operator, with its domain in front unless it is onnx's own."""
        name: str = self.node.op_type
        return f"{self.domain}.{name}" if self.domain else name

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that are given, as Python values; graphs too."""
        from onnx import helper

        return {each.name: helper.get_attribute_value(each) for each in self.node.attribute}


def schema_of(name: str, version: int, domain: str) -> Any:
    """What onnx knows of an operator, None if nothing: it is a custom one, or newer than its opset says."""
    import onnx

    try:
        return onnx.defs.get_schema(name, version, domain)
    except Exception as error:  # onnx.defs.SchemaError, made in C++
        if type(error).__name__ != "SchemaError":
            raise
        return None


class Inference:
    """Finds the outputs of nodes, one by one. `opsets` are versions by domain; `ir` is the model's IR version."""

    def __init__(self, ir: int) -> None:
        self._ir = ir
        self._evaluators: dict[bytes, Any] = {}

    def outputs(self, call: Call, opsets: Mapping[str, int]) -> list[Value]:
        """One value for each output of the node. UsageError if the node cannot take its inputs."""
        roots = roots_of(call.inputs)
        found = self._special(call)
        if found is None:
            found = self._shapes(call, opsets)
            if not fits(call.kind, call.inputs, found, call.attributes):
                raise _refused(call, f"It would give {_text(found[0])}.")
            if self._small(call, found):
                found = self._folded(call, opsets) or found
        return [
            Value(
                each.shape, each.dtype, each.data, roots if each.roots is None else each.roots, each.items, each.element
            )
            for each in found
        ]

    def _special(self, call: Call) -> list[Value] | None:
        """Outputs that need no rule: of the shape alone, or of a value that goes through as it is."""
        import numpy as np

        source = call.inputs[0] if call.inputs else None
        if call.domain or source is None:
            return None
        kind = call.node.op_type
        # What a constant is made of does not live on in its shape.
        roots = None if source.roots is None else frozenset[str]()
        if kind == "Shape" and source.known:
            attributes = call.attributes
            sizes = source.sizes[attributes.get("start", 0) : attributes.get("end")]
            return [of_data(np.array(sizes, dtype=np.int64), roots)]
        if kind == "Size" and source.known:
            return [of_data(np.array(elements(source.shape), dtype=np.int64), roots)]
        if kind == "Identity" or (kind == "Dropout" and source.data is not None and len(call.node.output) == 1):
            return [source]
        return None

    def _shapes(self, call: Call, opsets: Mapping[str, int]) -> list[Value]:
        names = list(call.node.output)
        if call.schema is None:
            found = contrib_shapes.shapes(call.kind, call.inputs, call.attributes, len(names))
            return found or [Value() for _ in names]
        inputs = dict(zip(call.node.input, call.inputs, strict=True))
        if any(value is not None and not value.dtype and not value.sequence for value in inputs.values()):
            return [Value() for _ in names]
        types = self._infer(call, inputs, opsets)
        found = [of_type(types[name]) if name in types else Value() for name in names]
        first = call.inputs[0] if call.inputs else None
        if (
            found
            and found[0].shape is None
            and not call.domain
            and call.node.op_type in _ALIKE.split()
            and first is not None
        ):
            found[0] = Value(first.shape, found[0].dtype or first.dtype)
        if (
            call.domain == "ai.onnx.ml"
            and found
            and not found[0].known
            and call.node.op_type in _SCALED
            and first is not None
        ):
            found[0] = Value(first.shape, FLOAT)
        if call.node.op_type == "Dropout" and len(found) > 1 and found[1].shape is None:
            found[1] = Value(found[0].shape, BOOL)
        return found

    def _infer(self, call: Call, inputs: Mapping[str, Value | None], opsets: Mapping[str, int]) -> dict[str, Any]:
        from onnx import helper, numpy_helper, shape_inference

        types = {name: type_of(value) for name, value in inputs.items() if name and value is not None}
        data = {
            name: numpy_helper.from_array(value.data, name)
            for name, value in inputs.items()
            if name and value is not None and value.data is not None
        }
        try:
            found: dict[str, Any] = shape_inference.infer_node_outputs(
                call.schema,
                call.node,
                types,
                data,
                opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
                ir_version=self._ir,
            )
        except shape_inference.InferenceError as error:
            message = " ".join(str(error).split())
            constants = all(value is None or value.data is not None for value in inputs.values())
            if constants or "TypeInferenceError" in message:
                return {}  # stricter than the operator itself is, which may run on constants
            raise _refused(call, message.rpartition("] ")[2].rstrip(".") + ".") from error
        return found

    def _small(self, call: Call, outputs: Sequence[Value]) -> bool:
        if call.domain or call.schema is None or call.node.op_type in _NOT_FOLDED.split():
            return False
        given = [value for value in call.inputs if value is not None]
        if any(value.data is None for value in given):
            return False
        for value in (*given, *outputs):
            size = elements(value.shape)
            if size is not None and size > (_FEW_FLOATS if value.dtype in _FLOATING else FEW):
                return False
        return True

    def _folded(self, call: Call, opsets: Mapping[str, int]) -> list[Value] | None:
        """The numbers that come out, where the reference implementation of the operator can say them."""
        import numpy as np

        names = [f"i{place}" if value is not None else "" for place, value in enumerate(call.inputs)]
        feeds = {name: value.data for name, value in zip(names, call.inputs, strict=True) if value is not None}
        try:
            made = self._evaluator(call, names, opsets).run(None, feeds)
            return [of_data(np.asarray(each)) for each in made]
        except Exception:  # what it cannot do, it says with whatever comes: the shape is known or not without it
            return None

    def _evaluator(self, call: Call, names: Sequence[str], opsets: Mapping[str, int]) -> Any:
        import onnx
        from onnx.reference import ReferenceEvaluator

        node = onnx.NodeProto()
        node.CopyFrom(call.node)
        del node.input[:], node.output[:]
        node.name = ""
        node.input.extend(names)
        outputs = [f"o{place}" for place in range(len(call.node.output))]
        node.output.extend(outputs)
        key = node.SerializeToString(deterministic=True) + bytes(str(call.version), "ascii")
        if key not in self._evaluators:
            graph = onnx.helper.make_graph(
                [node],
                "one node",
                [onnx.helper.make_empty_tensor_value_info(name) for name in names if name],
                [onnx.helper.make_empty_tensor_value_info(name) for name in outputs],
            )
            imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
            self._evaluators[key] = ReferenceEvaluator(
                onnx.helper.make_model(graph, opset_imports=imports, ir_version=self._ir)
            )
        return self._evaluators[key]


def _refused(call: Call, seen: str) -> UsageError:
    shapes = ", ".join(_text(value) for value in call.inputs)
    return UsageError(
        f"{call.kind} {call.node.name or call.node.output[0]!r} cannot take its inputs: {shapes}.",
        seen=seen,
        todo="A file may be made for other sizes than those that were given.",
    )


def _text(value: Value | None) -> str:
    if value is None:
        return "none"
    if value.shape is None:
        return "a sequence" if value.sequence else "?"
    return "x".join("?" if size is None else str(size) for size in value.shape) or "a scalar"
