"""flopwatch: how much does this program or network really compute, and where."""

from __future__ import annotations

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "chainer":
        from importlib import import_module

        return import_module("flopwatch.chainer")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
