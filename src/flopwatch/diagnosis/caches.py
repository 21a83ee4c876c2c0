"""The caches, as the kernel shows them; alike ones are one line."""

from __future__ import annotations

from typing import Any

from flopwatch.counters.hardware.surroundings import cpu_list
from flopwatch.diagnosis.findings import Finding, Section, cannot, ok
from flopwatch.diagnosis.host import Host

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def check(host: Host) -> Section:
    """A line for each kind of cache."""
    caches = facts_of(host)
    findings: list[Finding] = [ok(f"L{each['level']} {each['type']}", _text(each)) for each in caches]
    if not findings:
        findings.append(cannot("caches", "the system does not show them"))
    return Section("caches", tuple(findings), {"caches": caches})


def facts_of(host: Host) -> list[dict[str, Any]]:
    """Level, type, bytes (0: not told), ways, bytes of a line, how many there are, by how many CPUs one is shared."""
    kinds: dict[tuple[int, str, int, int, int, int], set[str]] = {}
    for folder in host.glob("sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*"):
        shared = host.read(f"{folder}/shared_cpu_list")
        numbers = [host.number(f"{folder}/{name}") or 0 for name in ("ways_of_associativity", "coherency_line_size")]
        kind = host.read(f"{folder}/type").lower()
        size = _bytes(host.read(f"{folder}/size"))
        key = (host.number(f"{folder}/level") or 0, kind, size, numbers[0], numbers[1], _cpus(shared))
        kinds.setdefault(key, set()).add(shared)
    names = ("level", "type", "bytes", "ways", "line_bytes", "shared_by")
    return [dict(zip(names, key, strict=True)) | {"count": len(kinds[key])} for key in sorted(kinds)]


def _text(cache: dict[str, Any]) -> str:
    parts = [_size(cache["bytes"])] if cache["bytes"] else ["of unknown size"]
    if cache["ways"]:
        parts.append(f"{cache['ways']} ways")
    if cache["line_bytes"]:
        parts.append(f"lines of {cache['line_bytes']} bytes")
    parts.append(f"shared by {cache['shared_by']} CPUs" if cache["shared_by"] > 1 else "for one CPU")
    return (f"{cache['count']} × " if cache["count"] > 1 else "") + ", ".join(parts)


def _size(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:g} {unit}"
    return f"{count} bytes"


def _bytes(text: str) -> int:
    digits, unit = text.rstrip("KMG"), text[-1:]
    return int(digits) * UNITS.get(unit, 1) if digits.isdigit() else 0


def _cpus(text: str) -> int:
    return max(len(cpu_list(text)), 1)
