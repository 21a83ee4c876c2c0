"""flopwatch: how much does this program or network really compute, and where."""

from __future__ import annotations

__version__ = "0.1.0"
