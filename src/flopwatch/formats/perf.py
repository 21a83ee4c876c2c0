"""Reads what `perf stat -x SEP` and `perf stat -j` print: counts of events, and for how much of the time each was counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec

from flopwatch.errors import UsageError
from flopwatch.events import Reading
from flopwatch.flops.pmu import raw_code
from flopwatch.scope import Scope

NOT_COUNTED = ("<not counted>", "<not supported>")
_VALUE = re.compile(r"<not counted>|<not supported>|\d+(\.\d+)?")
_UNIT = re.compile(r"[A-Za-z%/]*")
_EVENT = re.compile(r"[A-Za-z_].*")
_RAW = re.compile(r"r([0-9a-fA-F]{1,16})")
_MODIFIERS = re.compile(r":[ukhGHpPISDWeb]+$")
_TODO = "Give the output of `perf stat -x,` or `perf stat -j`, as perf wrote it (perf stat -o FILE)."


@dataclass(frozen=True, slots=True)
class Counted:
    """One line: an event of a PMU ("" if perf named none); `missing` is perf's own word if there is no count.

    `running` is the share of the time in which the event was counted, from 0 to 1; `spread` the relative standard
    deviation of several runs, whose mean the count is; None without any.
    """

    pmu: str
    reading: Reading
    missing: str = ""
    running: float = 1.0
    spread: float | None = None
    unit: str = ""


def read(path: str | Path) -> tuple[Counted, ...]:
    """The events of a file; raises UsageError if it cannot be read or holds none."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    return parse(text, repr(str(path)))


def parse(text: str, name: str = "the file") -> tuple[Counted, ...]:
    """The events in the output of perf, in the order of the lines; metrics that perf made of them are left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if any("Performance counter stats for" in line for line in lines):
        raise UsageError(f"{name} is perf's table for people, whose figures may be rounded.", todo=_TODO)
    as_json = bool(lines) and lines[0].lstrip().startswith("{")
    found = tuple(_json(lines, name) if as_json else _separated(lines, name))
    if not found:
        raise UsageError(f"{name} holds no event.", todo=_TODO)
    return found


def event_of(text: str) -> tuple[str, str, int]:
    """PMU, name and raw code of an event as perf names it: `r02c7`, `cpu/event=0xc7,umask=0x2/u`, `cpu_core/name/`, `name:u`.

    Without a PMU that is "", for a name without raw code 0.
    """
    plain = _MODIFIERS.sub("", text.strip())
    if "/" not in plain:
        return "", plain, _raw(plain)
    pmu, _, rest = plain.partition("/")
    inside = rest.partition("/")[0]
    terms = dict(term.partition("=")[::2] for term in inside.split(",") if term)
    if "config" in terms:
        return pmu, f"{pmu}/{inside}/", _int(terms["config"])
    if "event" in terms:
        fields = (_int(terms.get(key, "0")) for key in ("event", "umask", "cmask"))
        isa = "x86_64" if pmu.startswith("cpu") else "aarch64"  # as the kernel names the PMUs of cores
        return pmu, f"{pmu}/{inside}/", raw_code(isa, *fields)
    first = next(iter(terms), "")
    return pmu, first, _raw(first)


def _raw(text: str) -> int:
    raw = _RAW.fullmatch(text)
    return int(raw[1], 16) if raw else 0


def _int(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _json(lines: Sequence[str], name: str) -> Iterator[Counted]:
    for line in lines:
        try:
            entry = msgspec.json.decode(line.strip().rstrip(",").encode(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{name} has a line that is no JSON object.", seen=f"{line[:80]!r}: {error}.", todo=_TODO
            ) from error
        if "event" not in entry or "counter-value" not in entry:
            continue  # a metric that perf made of counts
        variance = entry.get("variance")
        yield _counted(
            str(entry["counter-value"]),
            str(entry.get("unit", "")),
            str(entry["event"]),
            where=str(entry.get("thread", "")),
            runtime=str(entry.get("event-runtime", "")),
            percent=str(entry.get("pcnt-running", "")),
            spread=None if variance is None else float(variance) / 100,
            name=name,
        )


def _separated(lines: Sequence[str], name: str) -> Iterator[Counted]:
    separator = _separator(lines, name)
    for line in lines:
        parts = _joined(line.split(separator), separator)
        at = _start(parts)
        if at is None:
            if len(parts) > 3 and not any(part.strip() for part in parts[:3]):
                continue  # a further metric of the event above
            raise UsageError(f"{name} has a line that is not perf's.", seen=f"{line[:80]!r}.", todo=_TODO)
        value, unit, event, *rest = parts[at:]
        spread = None
        if rest and rest[0].strip().endswith("%"):
            spread = float(rest.pop(0).strip().rstrip("%")) / 100
        runtime, percent = (*rest, "", "")[:2]
        where = next((part.strip() for part in parts[:at] if re.fullmatch(r"\s*\S.*-\d+\s*", part)), "")
        yield _counted(value, unit, event, where=where, runtime=runtime, percent=percent, spread=spread, name=name)


def _separator(lines: Sequence[str], name: str) -> str:
    """What stands between the columns: whatever makes perf's columns of the first line."""
    for separator in (",", ";", "\t", "|", ":", " "):
        if lines and _start(_joined(lines[0].split(separator), separator)) is not None:
            return separator
    seen = f"{lines[0][:80]!r}." if lines else "It is empty."
    raise UsageError(f"{name} is not the output of perf stat with a separator.", seen=seen, todo=_TODO)


def _start(parts: Sequence[str]) -> int | None:
    """Where value, unit and event begin: times, CPUs, sockets, cores or threads may stand before them."""
    for at in range(min(4, len(parts) - 2)):
        value, unit, event = (part.strip() for part in parts[at : at + 3])
        if _VALUE.fullmatch(value) and _UNIT.fullmatch(unit) and _EVENT.fullmatch(event):
            return at
    return None


def _joined(parts: Sequence[str], separator: str) -> list[str]:
    """Put events together again that have the separator in their own name, as `cpu/event=0xc7,umask=0x2/`."""
    found: list[str] = []
    open_ = False
    for part in parts:
        if open_:
            found[-1] += separator + part
        else:
            found.append(part)
        open_ = found[-1].count("/") == 1 and "=" in found[-1]
    return found


def _counted(
    value: str, unit: str, event: str, *, where: str, runtime: str, percent: str, spread: float | None, name: str
) -> Counted:
    pmu, event_name, code = event_of(event)
    value = value.strip()
    missing = value if value in NOT_COUNTED else ""
    try:
        count = 0 if missing else int(Decimal(value).to_integral_value())
        running = int(Decimal(runtime.strip() or "0"))
        share = float(percent.strip() or "100") / 100
    except (InvalidOperation, ValueError) as error:
        raise UsageError(
            f"{name} has a count that is no number.",
            seen=f"{event.strip()}: {value!r}, {runtime!r}, {percent!r}.",
            todo=_TODO,
        ) from error
    enabled = round(running / share) if 0 < share < 1 else running
    reading = Reading(Scope(thread=where), event_name, count, code, enabled, running)
    return Counted(pmu, reading, missing, share, spread, unit.strip())
