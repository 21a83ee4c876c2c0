"""What this machine can count, with which counter, tried now; what is missing, and what would enable it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from flopwatch import __version__
from flopwatch.counters import Availability
from flopwatch.diagnosis import caches, cpu, engine, frameworks, gpu, isa, permissions, pmu, virtualisation
from flopwatch.diagnosis.findings import Finding, Section, State, verdict
from flopwatch.diagnosis.host import Host
from flopwatch.errors import CannotMeasureError

__all__ = ["Diagnosis", "Finding", "Host", "Section", "State", "diagnose", "encode"]

# 1  first
SCHEMA = 1
SUBJECTS = (cpu, caches, isa, virtualisation, pmu, permissions, gpu, frameworks)
TRIALS: Mapping[str, Callable[[], Availability]] = {engine.NAME: engine.trial, pmu.NAME: pmu.trial}


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The sections, of which the first says which counters work; `usable` names those."""

    schema: int = SCHEMA
    flopwatch: str = __version__
    usable: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def exit_code(self) -> int:
        """0 if at least one counter works here, else that of CannotMeasureError."""
        return 0 if self.usable else CannotMeasureError.exit_code

    def section(self, name: str) -> Section:
        """The section of that name."""
        return next(section for section in self.sections if section.name == name)


def diagnose(host: Host | None = None, trials: Mapping[str, Callable[[], Availability]] = TRIALS) -> Diagnosis:
    """Look at the machine and try its counters now; never raises for what it finds."""
    seen = host or Host()
    found = [verdict(each.NAME, trials[each.NAME](), each.WORKS) for each in (engine, pmu)]
    usable = tuple(each.name for each in found if each.state is State.OK)
    counting = Section("what counts here", tuple(found), {"usable": list(usable)})
    return Diagnosis(usable=usable, sections=(counting, *(subject.check(seen) for subject in SUBJECTS)))


def encode(diagnosis: Diagnosis) -> bytes:
    """The diagnosis as JSON text."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=1) + b"\n"
