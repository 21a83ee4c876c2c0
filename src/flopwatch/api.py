"""The spine: everything that the command line does, as functions."""

from __future__ import annotations

from flopwatch.calling import Count, Measured, count, measure
from flopwatch.imported import read_counts
from flopwatch.measuring import measure_command, measure_process
from flopwatch.models import MeasuredModel, measure_model
from flopwatch.record import Record, load, save

__all__ = [
    "Count",
    "Measured",
    "MeasuredModel",
    "Record",
    "count",
    "load",
    "measure",
    "measure_command",
    "measure_model",
    "measure_process",
    "read_counts",
    "save",
]
