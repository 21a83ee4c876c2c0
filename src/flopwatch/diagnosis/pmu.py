"""The hardware counters: what the kernel shows, what this processor's events can tell, and a trial of them now."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from flopwatch.counters import Availability, Needs
from flopwatch.counters.hardware import refusals
from flopwatch.counters.hardware.surroundings import look
from flopwatch.diagnosis.cpu import microarchitectures
from flopwatch.diagnosis.findings import Finding, Section, cannot, ok, todo
from flopwatch.diagnosis.host import Host
from flopwatch.errors import FlopwatchError
from flopwatch.flops import DType, pmu

NAME = "hardware"
WORKS = "loops of known work were counted exactly"


def check(host: Host) -> Section:
    """The core PMUs that the kernel shows, and what the events of this processor can and cannot tell."""
    seen = host.surroundings()
    names = [each.name for each in seen.pmus]
    findings: list[Finding] = []
    if names:
        findings.append(ok("PMU", f"the kernel shows {', '.join(names)}"))
    elif seen.wsl or seen.hypervisor:
        findings.append(cannot("PMU", "this virtual machine has no virtual PMU"))
    else:
        findings.append(cannot("PMU", "the kernel shows none"))
    if seen.watchdog and names:
        findings.append(todo("NMI watchdog", "it holds one counter.", "Run `sudo sysctl kernel.nmi_watchdog=0`."))
    facts = {"pmus": names, "watchdog": seen.watchdog, "events": []}
    try:
        known = microarchitectures(host)
    except FlopwatchError as error:
        return Section("events", (*findings, cannot("events", error.happened)), facts)
    for name in known:
        findings += _events(name, bool(names))
    facts["events"] = list(known)
    return Section("events", tuple(findings), facts)


def _events(name: str, shown: bool) -> Iterator[Finding]:
    """What is known of the events of a microarchitecture; whether they can be opened here is another matter."""
    try:
        table = pmu.table(name)
    except FlopwatchError as error:
        yield cannot(name, error.seen or error.happened)
        return
    dtypes = ", ".join("all datatypes together" if dtype is DType.ANY else str(dtype) for dtype in table.sets)
    condition = "" if shown else "if the kernel showed them: "
    yield ok(name, f"{condition}FLOP of {dtypes}; {table.budget.counters} counters a thread")
    for sentence in (*table.overcounts, *table.cannot):
        yield cannot("  limits", sentence)


def trial() -> Availability:
    """Available, and calibrated anew instead of from the cache; never raises."""
    seen = look()
    refusal = refusals.at_sight(seen)
    if refusal is not None:
        return refusal
    # What this loads is heavy, and of no use where there is no PMU.
    from flopwatch.counters.hardware.policy import Policy

    with tempfile.TemporaryDirectory(prefix="flopwatch-doctor-") as folder:
        return Policy(seen, cached=Path(folder)).judge(Needs())
