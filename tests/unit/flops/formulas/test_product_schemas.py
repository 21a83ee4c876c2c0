"""Formulas of products read every overload of their operators by names that its schema has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention.varlen", reason="registers attention over packed sequences")

from flopwatch.events import Array, Op  # noqa: E402
from flopwatch.flops.classify import Unknown  # noqa: E402
from flopwatch.flops.formulas import Work, lookup  # noqa: E402

pytestmark = pytest.mark.torch

FAMILIES = (
    "attention",
    "contraction",
    "convolution",
    "deformable",
    "low_precision",
    "products",
    "quantised_products",
    "quantised_recurrent",
    "recurrent",
    "sparse",
    "transformer",
)


def overloads() -> dict[str, tuple[Any, Callable[[Op], Any]]]:
    """All schemas of operators that have a formula of these families."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        formula = lookup(schema.name)
        if callable(formula) and formula.__module__.rpartition(".")[2] in FAMILIES:
            found[f"{schema.name}.{schema.overload_name}"] = (schema, formula)
    return found


def example(argument: Any, rank: int, side: int) -> Any:
    """Some value of an argument's type; tensors all have the same shape."""
    array = Array((side,) * rank)
    kind, exact = str(argument.type), str(argument.real_type)
    if argument.name == "equation":
        return "ij,jk,kl,lm"
    if "CellParams" in exact:
        return [[Array((side, side)), Array((side, side)), None, None]]
    if "PackedParams" in exact or "ConvOpContext" in exact:
        return [Array((side,) * max(rank, 2)), None]
    if kind in ("Tensor", "Optional[Tensor]"):
        return array
    if "List[Tensor]" in kind:
        return [array] * 4
    if argument.has_default_value() and argument.default_value is not None:
        return argument.default_value
    numbers = {"bool": True, "float": 1.0, "str": "none"}
    for name, value in numbers.items():
        if kind == f"List[{name}]":
            return [value] * (argument.N or 3)
        if kind in (name, f"Optional[{name}]"):
            return value
    if kind == "List[int]":
        return [1] * (argument.N or 2)
    return 1 if kind == "int" else None


def read(schema: Any, formula: Callable[[Op], Any]) -> bool:
    """Whether some shapes go with a schema's arguments; KeyError for one that it does not have."""
    for rank in (2, 3, 4, 1, 5):
        for side in (4, 12):
            given = {argument.name: example(argument, rank, side) for argument in schema.arguments}
            try:
                found = formula(Op(schema.name, given, (Array((side,) * rank),) * 5))
            except (ValueError, IndexError):  # shapes that the operator would not take either
                continue
            assert isinstance(found, Work | Unknown)
            return True
    return False


def test_overloads_are_read_by_their_schemas() -> None:
    every = overloads()
    assert len(every) > 300
    assert [name for name, (schema, formula) in every.items() if not read(schema, formula)] == []
