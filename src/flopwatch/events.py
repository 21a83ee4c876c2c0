"""What counters emit: facts about what ran, without any opinion on what it is worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from flopwatch.scope import Scope


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block of machine code and how often it ran in one scope.

    `active` holds, for each masked instruction, its byte offset in `code` and the sum of its switched-on lanes over all runs.
    `scalable_bits` is the length of a scalable vector where the code ran (SVE; in streaming mode, of that mode's vectors).
    """

    scope: Scope
    isa: str
    address: int
    code: bytes
    runs: int
    active: tuple[tuple[int, int], ...] = ()
    library: str = ""
    symbol: str = ""
    scalable_bits: int = 128


@dataclass(frozen=True, slots=True)
class Reading:
    """A hardware event as the kernel or a profiler reported it: how often it was counted in one scope.

    `code` is the raw code of the event, `enabled` and `running` are nanoseconds; they are equal unless the counter was shared.
    """

    scope: Scope
    name: str
    count: int
    code: int = 0
    enabled: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True)
class Array:
    """Shape and datatype of a tensor that an operator takes or gives; there need be no data behind it.

    `dtype` is the name that numpy or PyTorch have for it ("float32", "bfloat16", "int64", "bool", "complex64", "quint8").
    `stored` is the number of elements that lie in memory, where that is not the product of the shape (an expanded view).
    `nonzero` is None for a dense tensor; of a sparse one it is the number of elements that it holds, -1 where that is not known.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    stored: int | None = None
    nonzero: int | None = None

    @property
    def size(self) -> int:
        """Elements, 1 for a scalar."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes in memory; a bool takes one, two int4 share one."""
        return -(-(self.size if self.stored is None else self.stored) * bits_of(self.dtype) // 8)


def bits_of(dtype: str) -> int:
    """Bits that one element of a datatype takes in memory; ValueError for a name that does not tell."""
    if dtype in ("bool", "byte", "char"):
        return 8
    match = re.match(r"[a-z_]*?(\d+)", dtype)
    if match is None:
        raise ValueError(f"how large is a {dtype}?")
    return int(match[1])


@dataclass(frozen=True, slots=True)
class Op:
    """One call of an operator of a framework or a model file, named as its dialect names it: "aten::mm", "onnx::Conv".

    `arguments` are by the formal names of the dialect, defaults filled in: an `Array` for a tensor, a list of them for a list,
    other values as they are; an optional one that was not given is None. `outputs` are flat; None for one that was not made.
    `times` is how often the call is made, all alike, as in a loop of a model file.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[Array | None, ...] = ()
    scope: Scope = field(default_factory=Scope)
    times: int = 1

    @property
    def arrays(self) -> Iterator[Array]:
        """All tensors that go in, those in lists too."""
        return arrays_in(self.arguments.values())

    @property
    def read(self) -> int:
        """Bytes of all tensors that go in, in one call."""
        return sum(array.bytes for array in self.arrays)

    @property
    def written(self) -> int:
        """Bytes of all tensors that come out, in one call."""
        return sum(array.bytes for array in self.outputs if array is not None)


def arrays_in(values: Iterable[Any]) -> Iterator[Array]:
    """All arrays among some values, and in the lists and tuples among them."""
    for value in values:
        if isinstance(value, Array):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from arrays_in(value)


class Part(NamedTuple):
    """One layer of a model: its path, its class, the parameters that it holds itself, and their bytes."""

    name: str
    kind: str
    params: int
    bytes: int = 0


class Traced(NamedTuple):
    """What following a model from operator to operator told, beside its operators.

    `how` says in words how it was followed ("on meta tensors"). Bytes: of activations at their peak, which was in layer `at`; of
    parameters and of buffers; 0 activations stand for "not known".
    """

    parts: tuple[Part, ...]
    how: str = ""
    notes: tuple[str, ...] = ()
    activations: int = 0
    at: str = ""
    parameters: int = 0
    buffers: int = 0
