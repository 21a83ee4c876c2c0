"""The spine: everything that the command line does, as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flopwatch.calling import Count, Measured, count, measure
from flopwatch.estimating import estimate, estimate_model
from flopwatch.imported import read_counts
from flopwatch.measuring import measure_command, measure_process
from flopwatch.models import measure_model
from flopwatch.record import Record, load, save
from flopwatch.subjects.model import Request

if TYPE_CHECKING:
    from flopwatch.diagnosis import Diagnosis

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


def doctor() -> Diagnosis:
    """What this machine can count, with which counter, tried now, and what would enable more; never raises for what it finds."""
    from flopwatch.diagnosis import diagnose  # other functions shall not wait for it

    return diagnose()
