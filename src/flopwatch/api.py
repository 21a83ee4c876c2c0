"""The spine: everything that the command line does, as functions."""

from __future__ import annotations

from flopwatch.measuring import measure_command, measure_process
from flopwatch.record import Record, load, save

__all__ = ["Record", "load", "measure_command", "measure_process", "save"]
