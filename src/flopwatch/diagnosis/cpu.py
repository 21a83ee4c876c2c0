"""The processor: what it calls itself, its numbers, its microarchitecture."""

from __future__ import annotations

from typing import Any

from flopwatch import processors
from flopwatch.diagnosis.findings import Finding, Section, cannot, ok
from flopwatch.diagnosis.host import Host
from flopwatch.errors import CannotMeasureError, FlopwatchError


def check(host: Host) -> Section:
    """Model, numbers, microarchitecture, CPUs."""
    facts = facts_of(host)
    name, numbers = facts["model"], facts["cpuid"]
    label = "implementer-part" if numbers.startswith("0x") else "family-model-stepping"
    findings: list[Finding] = [ok("model", name) if name else cannot("model", "the system does not tell it")]
    if numbers:
        findings.append(ok(label, numbers))
    if facts["board"]:
        findings.append(ok("board", facts["board"]))
    try:
        facts["microarchitectures"] = list(microarchitectures(host))
        findings.append(ok("microarchitecture", " + ".join(facts["microarchitectures"])))
    except FlopwatchError as error:
        facts["microarchitectures"] = []
        findings.append(cannot("microarchitecture", f"{error.happened} {error.seen}"))
    if facts["cpus"]:
        findings.append(ok("CPUs", str(facts["cpus"])))
    return Section("processor", tuple(findings), facts)


def facts_of(host: Host) -> dict[str, Any]:
    """The same as facts: `cpuid` is vendor-family-model-stepping, or implementer-part on Arm."""
    if host.system == "darwin":
        brand, count = host.output("sysctl", "-n", "machdep.cpu.brand_string"), host.output("sysctl", "-n", "hw.ncpu")
        number = int(count) if count.isdigit() else 0
        return {"model": brand, "cpuid": "", "board": "", "cpus": number}
    blocks = host.cpuinfo()
    cpus = [block for block in blocks if "processor" in block]
    first = cpus[0] if cpus else {}
    arm = "CPU implementer" in first
    keys = ["CPU implementer", "CPU part"] if arm else ["vendor_id", "cpu family", "model", "stepping"]
    kinds = dict.fromkeys("-".join(block.get(key, "?") for key in keys) for block in cpus if keys[0] in block)
    board = host.read("proc/device-tree/model") or next((each["Model"] for each in blocks if "Model" in each), "")
    return {
        "model": first.get("model name", "") or board,
        "cpuid": ", ".join(kinds),
        "board": board,
        "cpus": len(cpus),
    }


def microarchitectures(host: Host) -> tuple[str, ...]:
    """The microarchitecture of each kind of core.

    Raises CannotMeasureError for a processor that is not known by its numbers.
    """
    if host.system != "linux":
        raise CannotMeasureError("The processor cannot be identified.", seen=f"{host.system} shows no numbers of it.")
    found = processors.detect(host.read("proc/cpuinfo"), sys=host.root / "sys")
    return tuple(kind.microarchitecture for kind in found.kinds)
