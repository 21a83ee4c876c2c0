"""The one thing that reports know: a title, columns with units, rows and notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = str | int | float | None
Kind = Literal["text", "count", "share", "real"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `unit` is shown in the heading, `kind` says how a terminal prints a value (a share is 0 to 1)."""

    name: str
    kind: Kind = "text"
    unit: str = ""

    @property
    def heading(self) -> str:
        """The name with its unit in brackets."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table without any opinion on how it looks; None in a row is an unknown value, never a zero."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"sheet {self.title!r}: a row has {len(row)} values for {len(self.columns)} columns")
