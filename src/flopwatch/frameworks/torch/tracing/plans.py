"""What is to be done with each operator, decided once: its argument names, and whether it is followed to its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from flopwatch.flops.formulas import lookup
from flopwatch.frameworks.torch.tracing.arrays import numbers_of, value_of

_KEY = torch._C.DispatchKey.CompositeImplicitAutograd

# Questions about a tensor, which are no operators for anybody but subclasses with an answer of their own.
_QUESTIONS = frozenset(
    (
        "aten::is_contiguous",
        "aten::is_non_overlapping_and_dense",
        "aten::is_strides_like_format",
        "aten::numel",
        "aten::dim",
        "aten::size",
        "aten::storage_offset",
        "aten::stride",
        "aten::sym_is_contiguous",
        "aten::sym_numel",
        "aten::sym_size",
        "aten::sym_storage_offset",
        "aten::sym_stride",
        "prim::device",
        "prim::layout",
    )
)

# Factories of tensors whose content is known.
_CONSTANTS = frozenset(
    f"aten::{name}"
    for name in ("arange", "eye", "full", "ones", "scalar_tensor", "tril_indices", "triu_indices", "zeros")
)

# Operators that look at data through others, without a tag that says so.
_LOOKS = frozenset(f"aten::{name}" for name in ("allclose", "argwhere", "is_nonzero", "item", "nonzero_numpy", "where"))

# Operators in place after which the tensor has another storage.
_REPLACES = frozenset(("aten::resize_", "aten::resize_as_", "aten::set_"))

# Arguments that hold lengths, or their running sum: formulas take these as numbers.
_LENGTHS = frozenset(
    (
        "cu_seq_k",
        "cu_seq_q",
        "cu_seqlens_k",
        "cu_seqlens_q",
        "cum_seq_k",
        "cum_seq_q",
        "input_lengths",
        "target_lengths",
    )
)


class Plan:
    """One overload of an operator.

    `question`: it is none; `composite`: it is made of others and has no formula of its own, so that its parts are looked at;
    `bare`: it makes a tensor of nothing, and `constant`: always the same; `placed`: it may be told a device; `writes`: it changes
    its first argument; `views`: its result is no new tensor; `indexes`: its second argument is a list of indices; `lengths`:
    arguments whose content counts; `data`: the result's shape, or a number, depends on content; `fresh`, `same`: results are new
    tensors, or the first argument as it was.
    """

    __slots__ = (
        "bare",
        "composite",
        "constant",
        "data",
        "defaults",
        "fresh",
        "indexes",
        "lengths",
        "name",
        "names",
        "placed",
        "question",
        "same",
        "views",
        "writes",
    )

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name
        if func.namespace == "prims" and (known := _as_aten(func)) is not None:
            schema, self.name = known, known.name
        self.names: tuple[str, ...] = tuple(argument.name for argument in schema.arguments)
        self.defaults: dict[str, Any] = {
            argument.name: value_of(argument.default_value) for argument in schema.arguments
        }
        self.question = self.name in _QUESTIONS or self.name.startswith("profiler::")
        self.composite = _is_composite(func) and lookup(self.name) is None
        self.bare = not any("Tensor" in str(argument.type) for argument in schema.arguments)
        self.constant = self.name in _CONSTANTS
        self.lengths = tuple(name for name in self.names if name in _LENGTHS)
        self.indexes = self.name in ("aten::index", "aten::_unsafe_index")
        self.placed = any("Device" in str(argument.type) for argument in schema.arguments)
        self.writes = any(each.alias_info is not None and each.alias_info.is_write for each in schema.arguments[:1])
        self.views = any(each.alias_info is not None for each in schema.returns)
        tagged = torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags
        self.data = tagged or func.name() in _LOOKS
        # Whether results are new tensors, or the first argument, that has kept its shape; and depend on shapes only.
        plain = not (self.bare or self.data or self.indexes or self.placed)
        self.fresh = plain and not self.views and not schema.is_mutable and bool(schema.returns)
        self.same = plain and _is_in_place(func) and torch.Tag.inplace_view not in func.tags

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, with defaults, as formulas see them."""
        found = dict(self.defaults)
        found.update(zip(self.names, map(value_of, args), strict=False))
        for name, value in kwargs.items():
            found[name] = value_of(value)
        for name in self.lengths:
            value = (
                kwargs.get(name)
                if name in kwargs
                else args[self.names.index(name)]
                if name in self.names[: len(args)]
                else None
            )
            if isinstance(value, torch.Tensor):
                found[name] = numbers_of(value)
        return found


_plans: dict[Any, Plan] = {}


def plan_of(func: Any) -> Plan:
    """The plan of an operator, made when it is met first."""
    found = _plans.get(func)
    if found is None:
        found = _plans[func] = Plan(func)
    return found


def _as_aten(func: Any) -> Any:
    """The schema of the ATen operator that does the same as a primitive one of reference code and takes its arguments in the same order."""
    packet = getattr(torch.ops.aten, func._opname, None)
    if packet is None:
        return None
    overloads = [getattr(packet, name)._schema for name in ("Tensor", "default") if name in packet.overloads()]
    return next((each for each in overloads if len(each.arguments) >= len(func._schema.arguments)), None)


def _is_in_place(func: Any) -> bool:
    """Whether the operator changes the content of its first argument and of nothing else, and gives it back."""
    schema = func._schema
    written = [each.alias_info is not None and each.alias_info.is_write for each in schema.arguments]
    named = schema.name.endswith("_") and not schema.name.endswith("__") and schema.name not in _REPLACES
    return named and len(schema.returns) == 1 and written[:1] == [True] and not any(written[1:])


def _is_composite(func: Any) -> bool:
    has: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    return func.namespace == "aten" and bool(has(func.name(), _KEY))
