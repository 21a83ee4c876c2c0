"""A sheet as a Markdown table, for documents and issues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from flopwatch.reports.table import shown
from flopwatch.sheet import Sheet


def render(sheet: Sheet, out: TextIO) -> None:
    """Write the sheet with its title in bold and its notes as a list."""
    lines = [f"**{_escaped(sheet.title)}**", ""] if sheet.title else []
    if sheet.columns and sheet.rows:
        lines.append(_line(column.heading for column in sheet.columns))
        lines.append(_line("---" if column.kind == "text" else "---:" for column in sheet.columns))
        for row in sheet.rows:
            lines.append(_line(shown(value, column.kind) for value, column in zip(row, sheet.columns, strict=True)))
        lines.append("")
    lines += [f"- {_escaped(note)}" for note in sheet.notes]
    out.write("\n".join(lines).rstrip("\n") + "\n")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
