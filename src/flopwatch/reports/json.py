"""A sheet as JSON: columns with units, rows as lists, notes."""

from __future__ import annotations

import json
from typing import TextIO

from flopwatch.sheet import Sheet


def render(sheet: Sheet, out: TextIO) -> None:
    """Write the sheet; an unknown value is null."""
    document = {
        "title": sheet.title,
        "columns": [{"name": column.name, "unit": column.unit} for column in sheet.columns],
        "rows": [list(row) for row in sheet.rows],
        "notes": list(sheet.notes),
    }
    json.dump(document, out, indent=1)
    out.write("\n")
