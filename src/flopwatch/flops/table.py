"""Reads the instruction table of an architecture, which is data: flops/tables/isa/<isa>.toml says what its columns mean."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

from flopwatch.flops.operations import DType, Operation


class CountedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A family of mnemonics that does arithmetic."""

    names: str
    operation: Operation
    lanes: int | Literal["operand", "register", "result", "source", "tile"]
    source: str
    elements: Literal["float", "integer"] = "float"
    dtype: DType | None = None
    lane_bits: int | None = None
    mask_bits: int | None = None
    times: int = 1
    factor: int = 1
    note: str = ""


class FreeRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A family of mnemonics that does no arithmetic that is counted."""

    names: str
    reason: str
    source: str
    note: str = ""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rows of one architecture as they stand in its file."""

    isa: str
    coprocessor: str = ""
    counted: tuple[CountedRow, ...]
    free: tuple[FreeRow, ...]

    def by_mnemonic(self) -> Mapping[str, CountedRow | FreeRow]:
        """The row of each lower-case mnemonic; ValueError if a mnemonic stands in two rows."""
        rows: dict[str, CountedRow | FreeRow] = {}
        every: tuple[CountedRow | FreeRow, ...] = (*self.counted, *self.free)
        for row in every:
            for name in row.names.split():
                if name in rows:
                    raise ValueError(f"{self.isa}: {name} stands in two rows of the instruction table")
                rows[name] = row
        return MappingProxyType(rows)


def parse_table(text: str) -> Table:
    """A table from the text of its file; msgspec.ValidationError names what does not fit."""
    return msgspec.convert(tomllib.loads(text), Table)


@cache
def load_table(isa: str) -> Table:
    """The table of an architecture that flopwatch comes with ("x86_64", "aarch64")."""
    file = resources.files("flopwatch.flops") / "tables" / "isa" / f"{isa}.toml"
    return parse_table(file.read_text(encoding="utf-8"))
