"""A sheet as separated values: one header row with units, then the rows; notes are left out."""

from __future__ import annotations

import csv
from typing import TextIO

from flopwatch.sheet import Sheet


def render(sheet: Sheet, out: TextIO, separator: str = ",") -> None:
    """Write the sheet; an unknown value is an empty field. The separator may be longer than one character."""
    if len(separator) == 1 and separator not in '"\r\n':
        writer = csv.writer(out, delimiter=separator, lineterminator="\n")
        writer.writerow([column.heading for column in sheet.columns])
        writer.writerows(["" if value is None else value for value in row] for row in sheet.rows)
        return
    rows = [[column.heading for column in sheet.columns], *sheet.rows]
    out.writelines(separator.join("" if value is None else str(value) for value in row) + "\n" for row in rows)
