"""The hardware counters: what the kernel shows, what this processor's events can tell, and a trial of them now."""

from __future__ import annotations

from collections.abc import Callable

from flopwatch.counters import Availability
from flopwatch.counters.hardware.refusals import INSTEAD
from flopwatch.diagnosis.findings import Finding, Section, cannot, ok, todo
from flopwatch.diagnosis.host import Host

NAME = "hardware"
NOTHING_TO_DO = (INSTEAD, "Count on Linux")


def check(host: Host) -> Section:
    """The core PMUs and what the events of this processor can and cannot tell."""
    seen = host.surroundings()
    names = [pmu.name for pmu in seen.pmus]
    findings: list[Finding] = []
    if names:
        findings.append(ok("counters", f"the kernel shows {', '.join(names)}"))
    elif seen.hypervisor or seen.wsl:
        findings.append(cannot("counters", "none: this virtual machine has no virtual PMU"))
    else:
        findings.append(cannot("counters", "the kernel shows none"))
    if seen.watchdog and names:
        findings.append(todo("NMI watchdog", "it holds one counter.", "Run `sudo sysctl kernel.nmi_watchdog=0`."))
    return Section("hardware counters", tuple(findings), {"pmus": names, "watchdog": seen.watchdog})


def verdict(trial: Callable[[], Availability]) -> Finding:
    """One line: whether the counter works here, or why not."""
    found = trial()
    if found.ok:
        return ok(NAME, found.reason or "known loops were counted exactly")
    if not found.todo or found.todo.startswith(NOTHING_TO_DO):
        return cannot(NAME, found.reason)
    return todo(NAME, found.reason, found.todo)
