"""Operators that do no arithmetic: flops/tables/ops/aten_free.toml has them by reason."""

from __future__ import annotations

import tomllib
from importlib import resources

import msgspec

from flopwatch.flops.formulas.registry import free


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operators that are free for the same reason; views move no data."""

    reason: str
    names: str
    moves: bool = True


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it stands in its file."""

    free: tuple[Row, ...]


def rows() -> tuple[Row, ...]:
    """The table that flopwatch comes with."""
    file = resources.files("flopwatch.flops") / "tables" / "ops" / "aten_free.toml"
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Table).free


for _row in rows():
    _names = (name if "::" in name else f"aten::{name}" for name in _row.names.split())
    free(_row.reason, *_names, moves=_row.moves)
