"""Events as they are named on the command line."""

from __future__ import annotations

import re

from flopwatch.counters import RawEvent
from flopwatch.counters.hardware.software import SOFTWARE
from flopwatch.errors import UsageError

_RAW = re.compile(r"r([0-9a-f]{1,16})", re.IGNORECASE)


def parse(text: str) -> tuple[RawEvent, ...]:
    """Events as typed after -e: names or raw codes, with commas between, each with its weight behind "=" if it has one.

    Raises UsageError for what is no event.
    """
    found = []
    for part in text.split(","):
        name, equals, weight = part.strip().partition("=")
        name = name.removesuffix(":u")
        if equals and not weight.isdigit():
            raise UsageError(
                f"{weight!r} is no weight for the event {name}.", todo="Give FLOP per count, for example r08c7=4."
            )
        raw = _RAW.fullmatch(name)
        if raw is None and name not in SOFTWARE:
            raise UsageError(
                f"There is no event {name!r}.",
                todo=f"Give raw codes as perf has them (r02c7: umask 02, event c7), or: {', '.join(SOFTWARE)}.",
            )
        found.append(RawEvent(name, int(raw[1], 16) if raw else 0, int(weight) if equals else None))
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"The event {twice} is named twice.")
    return tuple(found)
