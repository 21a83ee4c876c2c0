"""A model to be measured: found by its name or made by a function in a file, with an input that it accepts."""

from __future__ import annotations

from flopwatch.subjects.model.files import ModelRaisedError, shown_as_the_users
from flopwatch.subjects.model.request import ModelSubject, Phase, Request, find

__all__ = ["ModelRaisedError", "ModelSubject", "Phase", "Request", "find", "shown_as_the_users"]
