"""The formats of other programs' files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from flopwatch import formats


def test_names_are_the_files() -> None:
    folder = Path(formats.__file__).parent
    found = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert {*formats.NAMES, *formats.MODELS.values()} == found - {"__init__"}
    assert all(callable(import_module(f"flopwatch.formats.{name}").read) for name in formats.NAMES)


def test_models_are_known_by_suffix() -> None:
    for suffix in formats.MODELS:
        assert callable(formats.find(f"folder/net{suffix}"))
        assert formats.find(f"NET{suffix.upper()}") is formats.find(f"net{suffix}")
    assert formats.find("resnet50") is None
    assert formats.find("model.py:make") is None
