"""What this process may do: capabilities and kernel settings that counters depend on."""

from __future__ import annotations

from flopwatch.counters.hardware.refusals import DOCKER, KUBERNETES, PARANOID
from flopwatch.diagnosis.findings import Finding, Section, cannot, ok, todo
from flopwatch.diagnosis.host import Host

# include/uapi/linux/capability.h
CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38}
PARANOID_FILE = "proc/sys/kernel/perf_event_paranoid"
PTRACE_FILE = "proc/sys/kernel/yama/ptrace_scope"
SECCOMP = {"0": "none", "1": "strict", "2": "filter"}
PTRACE = {
    0: "any process of one's own may be counted by stat -p",
    1: "stat -p needs root; processes that flopwatch starts are no trouble",
    2: "stat -p needs root; processes that flopwatch starts are no trouble",
    3: "nobody may look into a running process until the next start of this machine: no stat -p",
}


def check(host: Host) -> Section:
    """Capabilities, perf_event_paranoid, seccomp, ptrace_scope."""
    if host.system != "linux":
        return Section(
            "permissions", (cannot("permissions", f"these are settings of Linux, and this is {host.system}"),)
        )
    status = dict(line.split(":", 1) for line in host.read("proc/self/status").splitlines() if ":" in line)
    effective = int(status.get("CapEff", "0").strip() or "0", 16)
    held = [name for name, bit in CAPABILITIES.items() if effective >> bit & 1]
    paranoid, scope = host.number(PARANOID_FILE), host.number(PTRACE_FILE)
    seccomp = SECCOMP.get(status.get("Seccomp", "").strip(), "unknown")
    findings = (
        ok("capabilities", " ".join(held) or "none of those that counters know"),
        _paranoid(paranoid, held),
        _seccomp(seccomp, host),
        _ptrace(scope, held),
    )
    facts = {"capabilities": held, "perf_event_paranoid": paranoid, "seccomp": seccomp, "ptrace_scope": scope}
    return Section("permissions", findings, facts)


def _paranoid(level: int | None, held: list[str]) -> Finding:
    name = "perf_event_paranoid"
    if level is None:
        return cannot(name, "this kernel has no such setting, so it has no perf events")
    if level <= 2:
        return ok(name, f"{level}: a program may count itself and its children")
    if "CAP_PERFMON" in held or "CAP_SYS_ADMIN" in held:
        return ok(name, f"{level}, which does not hold for this process with its capabilities")
    return todo(name, f"{level}: only privileged programs may count.", f"{PARANOID}.")


def _seccomp(mode: str, host: Host) -> Finding:
    if mode in ("none", "unknown"):
        return ok("seccomp", "no filter of system calls" if mode == "none" else "the kernel does not tell")
    seen = host.surroundings()
    reason = f"a {mode} looks at system calls" if mode == "filter" else "strict"
    if not seen.container:
        return ok("seccomp", f"{reason}; what it forbids is seen only by trying")
    remedy = KUBERNETES if seen.container == "kubernetes" else DOCKER
    return todo("seccomp", f"{reason}, and usual ones forbid perf_event_open.", f"{remedy}, for --counter hardware.")


def _ptrace(scope: int | None, held: list[str]) -> Finding:
    if scope is None:
        return ok("ptrace_scope", "not set: any process of one's own may be counted by stat -p")
    if scope in (1, 2) and "CAP_SYS_PTRACE" in held:
        return ok("ptrace_scope", f"{scope}, and this process may look into others: stat -p works")
    text = f"{scope}: {PTRACE.get(scope, 'a value of its own')}"
    if scope in (1, 2):
        return todo("ptrace_scope", f"{text}.", "Run `sudo sysctl kernel.yama.ptrace_scope=0`, or use sudo.")
    return cannot("ptrace_scope", text) if scope >= 3 else ok("ptrace_scope", text)
