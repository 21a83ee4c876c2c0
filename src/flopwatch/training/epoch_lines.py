"""Epochs as lines of 80 columns that can be printed one by one, while the run goes on."""

from __future__ import annotations

from flopwatch.reports.table import shown
from flopwatch.training.results import COLUMNS, Document, title, values
from flopwatch.training.rows import Row

# Widths of the columns: a number that is longer pushes the others to the right, and is never cut.
_WIDTHS = (5, 7, 7, 7, 7, 8, 6, 7, 7, 7)


def heading(document: Document) -> str:
    """What the rows are about, and the names of the columns."""
    return f"{title(document)}\n{_joined([column.heading for column in COLUMNS])}"


def line(row: Row) -> str:
    """One epoch."""
    return _joined([shown(value, column.kind) for value, column in zip(values(row), COLUMNS, strict=True)])


def _joined(texts: list[str]) -> str:
    return " ".join(text.replace(" %", "%").rjust(width) for text, width in zip(texts, _WIDTHS, strict=True)).rstrip()
