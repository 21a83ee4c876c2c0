"""Report formats: each sibling renders any sheet with `render(sheet, out)`; the file name is the format's name."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, TextIO, cast

from flopwatch.errors import UsageError
from flopwatch.sheet import Sheet

NAMES = ("table", "csv", "json", "markdown")


class Report(Protocol):
    """What each sibling module offers."""

    def render(self, sheet: Sheet, out: TextIO) -> None:
        """Write the sheet to `out`."""


def find(name: str) -> Report:
    """The report format of that name; raises UsageError with the accepted names."""
    if name not in NAMES:
        raise UsageError(f"There is no report format named {name!r}.", todo=f"Choose one of: {', '.join(NAMES)}.")
    return cast(Report, import_module(f"flopwatch.reports.{name}"))
