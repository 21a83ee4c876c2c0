"""A sheet as terminal text: fits the terminal (80 columns elsewhere), coloured on a terminal only."""

from __future__ import annotations

import io
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flopwatch.sheet import Kind, Sheet, Value

WIDTH = 80
NAME = 14  # what a name needs at least, which can be folded
PADDING = 2


def render(sheet: Sheet, out: TextIO) -> None:
    """Write the sheet; long texts are folded, numbers never are."""
    if out.isatty():
        _print(sheet, Console(file=out, highlight=False, markup=False, emoji=False))
        return
    text = io.StringIO()
    console = Console(file=text, width=WIDTH, highlight=False, markup=False, emoji=False, color_system=None)
    console.width = max(WIDTH, _narrowest(sheet))
    _print(sheet, console)
    out.writelines(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def _print(sheet: Sheet, console: Console) -> None:
    if sheet.title:
        console.print(Text(sheet.title, style="bold"))
    if sheet.columns and sheet.rows:
        console.print(_table(sheet))
    for note in sheet.notes:
        console.print(Text(note))


def _narrowest(sheet: Sheet) -> int:
    """Columns that the table cannot do without: a number that lost a digit would be another number."""
    width = 0
    for index, column in enumerate(sheet.columns):
        texts = [column.heading, *(shown(row[index], column.kind) for row in sheet.rows)]
        longest = max(map(len, texts))
        width += min(longest, NAME) if column.kind == "text" else longest
    return width + PADDING * (len(sheet.columns) - 1)


def _table(sheet: Sheet) -> Table:
    table = Table(box=None, padding=(0, PADDING, 0, 0), pad_edge=False, header_style="dim")
    for column in sheet.columns:
        text = column.kind == "text"
        table.add_column(
            Text(column.heading),
            justify="left" if text else "right",
            no_wrap=not text,
            overflow="fold",
            style="" if text else "cyan",
        )
    for row in sheet.rows:
        table.add_row(*(Text(shown(value, column.kind)) for value, column in zip(row, sheet.columns, strict=True)))
    return table


def shown(value: Value, kind: Kind) -> str:
    """One value as people read it: counts in groups of three, shares in percent, unknown as a dash."""
    if value is None:
        return "-"
    if kind == "count" and isinstance(value, int):
        return f"{value:,}"
    if kind == "share" and isinstance(value, (int, float)):
        return percent(value)
    if kind == "real" and isinstance(value, (int, float)):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def percent(share: float) -> str:
    """A share in percent, negative ones too; only nothing is 0 % and only everything is 100 %."""
    if share < 0:
        shown = percent(-share)
        return f"> -{shown.removeprefix('< ')}" if shown.startswith("<") else f"-{shown}"
    if share < 1 and round(share * 100, 2) >= 100:
        return "99.99 %"
    if 0 < share < 0.0001:
        return "< 0.01 %"
    return f"{share * 100:.0f} %" if share in (0, 1) else f"{share * 100:.2f} %"
