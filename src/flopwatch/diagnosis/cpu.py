"""The processor: what it calls itself, its numbers, its microarchitecture."""

from __future__ import annotations

from typing import Any

from flopwatch.diagnosis.findings import Finding, Section, cannot, ok
from flopwatch.diagnosis.host import Host


def check(host: Host) -> Section:
    """Model, numbers, microarchitecture, CPUs."""
    facts = facts_of(host)
    name, numbers = facts["model"], facts["cpuid"]
    findings: list[Finding] = [ok("model", name) if name else cannot("model", "the system does not tell it")]
    if numbers:
        findings.append(ok(facts["numbers"], numbers))
    if facts["board"]:
        findings.append(ok("board", facts["board"]))
    findings.append(_microarchitecture(host, facts))
    if facts["cpus"]:
        findings.append(ok("CPUs", str(facts["cpus"])))
    return Section("processor", tuple(findings), facts)


def facts_of(host: Host) -> dict[str, Any]:
    """The same as facts: `cpuid` is vendor-family-model-stepping, or implementer-part-variant-revision on Arm."""
    if host.system == "darwin":
        brand, count = host.output("sysctl", "-n", "machdep.cpu.brand_string"), host.output("sysctl", "-n", "hw.ncpu")
        cpus = int(count) if count.isdigit() else 0
        return {"model": brand, "cpuid": "", "numbers": "", "board": "", "cpus": cpus}
    blocks = host.cpuinfo()
    cpus = [block for block in blocks if "processor" in block]
    first = cpus[0] if cpus else {}
    arm = "CPU implementer" in first
    keys = ("CPU implementer", "CPU part", "CPU variant", "CPU revision") if arm else ()
    keys = keys or ("vendor_id", "cpu family", "model", "stepping")
    kinds = dict.fromkeys("-".join(block.get(key, "?") for key in keys) for block in cpus if keys[0] in block)
    board = host.read("proc/device-tree/model") or next((each["Model"] for each in blocks if "Model" in each), "")
    return {
        "model": first.get("model name", "") or board,
        "cpuid": ", ".join(kinds),
        "numbers": "implementer-part-…" if arm else "family-model-…",
        "board": board,
        "cpus": len(cpus),
    }


def _microarchitecture(host: Host, facts: dict[str, Any]) -> Finding:
    return cannot("microarchitecture", "it is not known")
