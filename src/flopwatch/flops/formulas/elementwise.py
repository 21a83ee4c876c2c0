"""Functions of single numbers: what each costs for one element of its result stands in flops/tables/ops/elementwise.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

import msgspec

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, work


class Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A function of single numbers: its definition, and the operations for one element of the result."""

    name: str
    equation: str
    add: int = 0
    mul: int = 0
    div: int = 0
    sqrt: int = 0
    minmax: int = 0
    transcendental: int = 0
    source: str = ""
    aten: str = ""


class Elementwise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it stands in its file."""

    function: tuple[Function, ...]


@cache
def functions() -> Mapping[str, Function]:
    """The rows of the table by name; ValueError if a name stands in two rows."""
    file = resources.files("flopwatch.flops") / "tables" / "ops" / "elementwise.toml"
    table = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Elementwise)
    rows: dict[str, Function] = {}
    for row in table.function:
        if row.name in rows:
            raise ValueError(f"{row.name} stands in two rows of the table of functions")
        rows[row.name] = row
    return MappingProxyType(rows)


def elementwise(name: str, numbers: Numbers | Array, elements: int) -> Work:
    """`elements` values of the function that the table has under this name; KeyError if it has none."""
    return each(functions()[name], numbers, elements)


def each(function: Function, numbers: Numbers | Array, elements: int) -> Work:
    """`elements` values of a function."""
    return work(
        numbers,
        add=function.add * elements,
        mul=function.mul * elements,
        div=function.div * elements,
        sqrt=function.sqrt * elements,
        minmax=function.minmax * elements,
        transcendental=function.transcendental * elements,
    )
