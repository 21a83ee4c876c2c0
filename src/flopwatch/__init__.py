"""flopwatch: how much does this program or network really compute, and where."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flopwatch.api import (
        Count,
        Measured,
        Record,
        Request,
        count,
        doctor,
        estimate,
        estimate_model,
        load,
        measure,
        measure_command,
        measure_model,
        measure_process,
        read_counts,
        save,
    )

__version__ = "0.1.0"
__all__ = [
    "Count",
    "Measured",
    "Record",
    "Request",
    "count",
    "doctor",
    "load",
    "measure",
    "measure_command",
    "estimate",
    "estimate_model",
    "measure_model",
    "measure_process",
    "read_counts",
    "save",
]


def __getattr__(name: str) -> object:
    # Nothing is loaded before it is asked for: `import flopwatch` costs nothing.
    if name == "chainer":
        return import_module("flopwatch.chainer")
    if name in __all__:
        return getattr(import_module("flopwatch.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
