"""What a diagnosis is made of: lines in one of three states, in sections, each with the bare facts beside it for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from flopwatch.counters import Availability
from flopwatch.counters.hardware.refusals import INSTEAD

# Advice that begins so changes nothing about this machine.
ELSEWHERE = (INSTEAD, "Count on Linux", "Run flopwatch on")


class State(StrEnum):
    """Of one line: it is so, or works; it cannot be had here; it could be, by doing something."""

    OK = "ok"
    CANNOT = "cannot"
    TODO = "to do"


class Finding(msgspec.Struct, frozen=True):
    """One line: `text` is what was found, or why not; `todo` is what would change it, or what to do instead."""

    name: str
    state: State
    text: str
    todo: str = ""


class Section(msgspec.Struct, frozen=True):
    """The lines about one subject, and the same as `facts` under stable keys."""

    name: str
    findings: tuple[Finding, ...]
    facts: dict[str, Any] = {}


def ok(name: str, text: str) -> Finding:
    """A line about something that is there, or works."""
    return Finding(name, State.OK, text)


def cannot(name: str, reason: str, instead: str = "") -> Finding:
    """A line about something that cannot be had on this machine as it is; `instead` says what else there is."""
    return Finding(name, State.CANNOT, reason, instead)


def todo(name: str, reason: str, command: str) -> Finding:
    """A line about something that could be had: `command` says how."""
    return Finding(name, State.TODO, reason, command)


def verdict(name: str, found: Availability, works: str) -> Finding:
    """The line about a counter that was tried."""
    if found.ok:
        return ok(name, works)
    if not found.todo or found.todo.startswith(ELSEWHERE):
        return cannot(name, found.reason, found.todo)
    return todo(name, found.reason, found.todo)
