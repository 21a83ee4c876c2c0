"""What stands between a program and the counters: system, kernel setting, container, virtual machine, PMUs. Only files are read."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEVICES = "sys/bus/event_source/devices"
# Folders of core PMUs: x86, x86 with several kinds of cores, Arm, one for all others.
_CORE = ("cpu", "cpu_core", "cpu_atom", "cpu_lowpower")
_CORE_PREFIXES = ("armv8", "armv9", "apple_", "cpu_")


@dataclass(frozen=True, slots=True)
class Pmu:
    """The counters of one kind of core: the kernel's name and number for them, and the CPUs that have them (empty: all)."""

    name: str
    type: int
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was found; `paranoid` is None where the kernel has no such setting, `container` is "", "docker" or "kubernetes"."""

    system: str = "linux"
    machine: str = "x86_64"
    release: str = ""
    paranoid: int | None = 2
    pmus: tuple[Pmu, ...] = ()
    hypervisor: bool = False
    container: str = ""
    seccomp: bool = False
    watchdog: bool = False

    @property
    def wsl(self) -> bool:
        """Whether this is Linux inside Windows."""
        return "microsoft" in self.release.lower()


def look(root: Path = Path("/"), env: Mapping[str, str] | None = None) -> Surroundings:
    """Look around; never raises."""
    cpuinfo = _text(root / "proc/cpuinfo", 1 << 14)
    status = _text(root / "proc/self/status")
    return Surroundings(
        system=sys.platform,
        machine=platform.machine(),
        release=_text(root / "proc/sys/kernel/osrelease").strip(),
        paranoid=_number(root / "proc/sys/kernel/perf_event_paranoid"),
        pmus=pmus(root),
        hypervisor=" hypervisor" in cpuinfo or (root / "sys/hypervisor/type").exists(),
        container=_container(root, os.environ if env is None else env),
        seccomp="Seccomp:\t2" in status,
        watchdog=_number(root / "proc/sys/kernel/nmi_watchdog") == 1,
    )


def pmus(root: Path = Path("/")) -> tuple[Pmu, ...]:
    """The core PMUs that the kernel knows; those whose CPUs are all offline are left out."""
    try:
        names = sorted(os.listdir(root / DEVICES))
    except OSError:
        return ()
    found = []
    for name in names:
        if name not in _CORE and not name.startswith(_CORE_PREFIXES):
            continue
        number = _number(root / DEVICES / name / "type")
        listed = root / DEVICES / name / "cpus"
        cpus = cpu_list(_text(listed))
        if number is None or (not cpus and listed.exists()):
            continue
        found.append(Pmu(name, number, cpus))
    return tuple(found)


def cpu_list(text: str) -> tuple[int, ...]:
    """The CPUs of a kernel list such as "0-3,8"; empty if it is none."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def boot_id(root: Path = Path("/")) -> str:
    """The kernel's name for the time since it started; empty if it has none."""
    return _text(root / "proc/sys/kernel/random/boot_id").strip()


def processor_flags(root: Path = Path("/")) -> frozenset[str]:
    """The instruction sets of the processor under the kernel's names."""
    for line in _text(root / "proc/cpuinfo", 1 << 14).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _container(root: Path, env: Mapping[str, str]) -> str:
    if "KUBERNETES_SERVICE_HOST" in env or (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    marks = (root / ".dockerenv", root / "run/.containerenv")
    return "docker" if any(mark.exists() for mark in marks) else ""


def _text(path: Path, most: int = 1 << 12) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None
