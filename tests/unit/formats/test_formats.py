"""The formats of other programs' files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from flopwatch import formats


def test_names_are_the_files() -> None:
    found = {path.stem for path in Path(formats.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(formats.NAMES) == found
    assert all(callable(import_module(f"flopwatch.formats.{name}").read) for name in formats.NAMES)
