"""The error tree: what happened, what was seen, what to do; each error carries its exit code.

FlopwatchError
    UsageError          2  the request makes no sense
    IncompleteError     3  --strict, and something is unknown or partial
    CannotMeasureError  4  this machine or program cannot be measured
"""

from __future__ import annotations


class FlopwatchError(Exception):
    """Something the user can act on: `happened`, then `seen`, then `todo`, printed as sentences."""

    exit_code = 1

    def __init__(self, happened: str, *, seen: str = "", todo: str = "") -> None:
        self.happened = happened
        self.seen = seen
        self.todo = todo
        super().__init__(" ".join(part for part in (happened, seen, todo) if part))


class UsageError(FlopwatchError):
    """The request makes no sense as typed."""

    exit_code = 2


class IncompleteError(FlopwatchError):
    """Strictness was asked for, and something is unknown or partial."""

    exit_code = 3


class CannotMeasureError(FlopwatchError):
    """This machine or this program cannot be measured in the way asked for."""

    exit_code = 4
