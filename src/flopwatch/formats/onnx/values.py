"""What is known of a value in a graph before anything is run: its type, its shape, and the numbers of small ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from flopwatch.events import Array

Dims = tuple[int | None, ...]

FEW = 65_536
"""More elements than this are not looked at: no list of sizes is that long."""

# Names of the element types, by their numbers in onnx.proto, as numpy and PyTorch have them; text is left out.
NAMES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
    27: "float6_e2m3fn",
    28: "float6_e3m2fn",
}
FLOAT, INT64, BOOL, TEXT = 1, 7, 9, 8


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor: `shape` is None if not even its rank is known, a size None if that size is not; `dtype` 0 if not known.

    `data` is a numpy array for a small tensor of known numbers. `roots` names the constants that it is made of and nothing
    else; None if an input of the model has a part in it. A sequence has `items`, or, where nobody knows how many there are,
    one of them as `element`. `optional` values may turn out not to be there.
    """

    shape: Dims | None = None
    dtype: int = 0
    data: Any = None
    roots: frozenset[str] | None = None
    items: tuple[Value, ...] | None = None
    element: Value | None = None
    optional: bool = False

    @property
    def sequence(self) -> bool:
        """Whether this is a list of tensors."""
        return self.items is not None or self.element is not None

    @property
    def known(self) -> bool:
        """Whether the whole shape is known."""
        return self.shape is not None and None not in self.shape

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape; ValueError if it is not known."""
        if self.shape is None:
            raise ValueError("a shape that is not known")
        sizes = tuple(size for size in self.shape if size is not None)
        if len(sizes) != len(self.shape):
            raise ValueError(f"a shape that is not known: {self.shape}")
        return sizes

    @property
    def array(self) -> Array | None:
        """As operators are told of it; None if that cannot be said, or if it is text."""
        name = NAMES.get(self.dtype)
        return Array(self.sizes, name) if self.known and name is not None else None

    def like(self, other: Value) -> bool:
        """Whether the two have the same type, shape and numbers."""
        if self.sequence or other.sequence:
            mine, others = self.items, other.items
            if mine is None or others is None or len(mine) != len(others):
                return False
            return all(one.like(two) for one, two in zip(mine, others, strict=True))
        if self.shape != other.shape or self.dtype != other.dtype or (self.data is None) != (other.data is None):
            return False
        return self.data is None or bool((self.data == other.data).all())

    def without_data(self) -> Value:
        """The same shape, with numbers that are not known."""
        return Value(self.shape, self.dtype, roots=self.roots, items=self.items, element=self.element)


def of_data(data: Any, roots: frozenset[str] | None = None) -> Value:
    """A value whose numbers are known, from a numpy array; those of a large one are forgotten."""
    from onnx import helper

    dtype = helper.np_dtype_to_tensor_dtype(data.dtype)
    return Value(tuple(data.shape), int(dtype), data if data.size <= FEW else None, roots)


def of_type(proto: Any, bind: Any = None) -> Value:
    """A value from a TypeProto; `bind` says what a size that has a name is, or None."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        return Value(_dims(tensor.shape, bind) if tensor.HasField("shape") else None, tensor.elem_type)
    if kind in ("sequence_type", "optional_type"):
        inner = of_type(getattr(proto, kind).elem_type, bind)
        return Value(element=inner) if kind == "sequence_type" else inner
    return Value()


def _dims(shape: Any, bind: Any) -> Dims:
    found: list[int | None] = []
    for dim in shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            found.append(dim.dim_value)
        else:
            found.append(bind(dim.dim_param) if bind is not None and dim.dim_param else None)
    return tuple(found)


def type_of(value: Value) -> Any:
    """The TypeProto of a value."""
    from onnx import TypeProto

    proto = TypeProto()
    if value.sequence:
        proto.sequence_type.elem_type.CopyFrom(type_of(merged(value)))
        return proto
    proto.tensor_type.elem_type = value.dtype
    if value.shape is not None:
        proto.tensor_type.shape.SetInParent()
        for size in value.shape:
            dim = proto.tensor_type.shape.dim.add()
            if size is not None:
                dim.dim_value = size
    return proto


def merged(sequence: Value) -> Value:
    """What all tensors of a sequence have in common."""
    if sequence.items is None:
        return sequence.element or Value()
    return common(sequence.items)


def common(values: Sequence[Value]) -> Value:
    """What several values have in common: sizes that differ are not known."""
    if not values:
        return Value()
    first = values[0]
    if all(value.like(first) for value in values[1:]):
        return first
    if any(value.sequence for value in values):
        return Value(element=common([merged(value) for value in values]))
    dtype = first.dtype if all(value.dtype == first.dtype for value in values) else 0
    shapes = [value.shape for value in values]
    if first.shape is None or any(shape is None or len(shape) != len(first.shape) for shape in shapes):
        return Value(None, dtype)
    columns = zip(*(shape or () for shape in shapes), strict=True)
    return Value(tuple(column[0] if len(set(column)) == 1 else None for column in columns), dtype)


def roots_of(values: Iterable[Value | None]) -> frozenset[str] | None:
    """The constants that a result of some values is made of; None if one of them is no constant, or if there is none."""
    found: set[str] = set()
    seen = False
    for value in values:
        if value is None:
            continue
        if value.roots is None:
            return None
        seen = True
        found |= value.roots
    return frozenset(found) if seen else None


def elements(shape: Dims | None) -> int | None:
    """Elements of a shape; None if that is not known."""
    if shape is None:
        return None
    sizes = [size for size in shape if size is not None]
    return prod(sizes) if len(sizes) == len(shape) else None


def bytes_of(value: Value) -> int:
    """Bytes of a value in memory, 0 if that is not known."""
    array = value.array
    return 0 if array is None else array.bytes
