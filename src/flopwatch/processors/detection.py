"""Identifies processors from /proc/cpuinfo and /sys; what they are called is data: processors/data/cpuid.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import pmu

_TODO = "Use --counter instrumented, which needs no events, or add its row to processors/data/cpuid.toml."


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of core: the name of its PMU in /sys/bus/event_source/devices ("" if not known), its table, its CPUs.

    `cpus` is a list such as "0-7,16", as the kernel writes it; empty for every CPU.
    """

    pmu: str
    microarchitecture: str
    cpus: str = ""


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor; `name` is its microarchitecture, or that of each kind of core, joined by "+".

    On Arm `vendor` is the implementer in hexadecimal, `model` the part of the first kind of core and `family` 0. One
    that was found by name has no numbers.
    """

    name: str
    kinds: tuple[Kind, ...]
    vendor: str = ""
    family: int = 0
    model: int = 0
    stepping: int = 0

    @property
    def hybrid(self) -> bool:
        """Whether it has several kinds of cores."""
        return len(self.kinds) > 1


Numbers = tuple[int | tuple[int, int], ...]


class X86(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of the data: some models of a family."""

    vendor: str
    family: int
    source: str
    models: Numbers = ()
    steppings: tuple[int, int] = (0, 255)
    microarchitecture: str = ""
    kinds: dict[str, str] = {}
    names: tuple[str, ...] = ()
    note: str = ""


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of the data: some parts of an implementer."""

    implementer: int
    parts: Numbers
    microarchitecture: str
    source: str
    names: tuple[str, ...] = ()
    note: str = ""


class Cpuid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rows."""

    x86: tuple[X86, ...]
    arm: tuple[Arm, ...]


@cache
def data() -> Cpuid:
    """The rows that flopwatch comes with."""
    text = (resources.files("flopwatch.processors") / "data" / "cpuid.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Cpuid)


def detect(cpuinfo: str | None = None, *, sys: Path = Path("/sys")) -> Processor:
    """The processor that this runs on, or the one that the text of a /proc/cpuinfo describes.

    Raises CannotMeasureError for one that is not known, and for cores that cannot be told apart.
    """
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise CannotMeasureError(
                "The processor cannot be identified.",
                seen=f"/proc/cpuinfo cannot be read: {error.strerror}.",
                todo=_TODO,
            ) from error
    cores = _cores(cpuinfo)
    if any("CPU implementer" in core for core in cores):
        return _arm([core for core in cores if "CPU implementer" in core], sys)
    for core in cores:
        if {"vendor_id", "cpu family", "model"} <= core.keys():
            return _x86(core, sys)
    raise CannotMeasureError(
        "The processor cannot be identified.", seen="/proc/cpuinfo names neither a family nor a part.", todo=_TODO
    )


def find(name: str) -> Processor:
    """A processor by the name of its microarchitecture, or by another name that the data has.

    Raises UsageError with the names most like it if there is none.
    """
    wanted = _plain(name)
    tables = {_plain(each): each for each in pmu.names()}
    if wanted in tables:
        table = tables[wanted]
        return Processor(table, (Kind("", table),))
    for row in _rows():
        if wanted in map(_plain, row.names):
            kinds = row.kinds if isinstance(row, X86) else {}
            return _processor([Kind(each, table) for each, table in kinds.items()] or [Kind("", row.microarchitecture)])
    raise UsageError(f"There is no processor named {name!r}.", todo=pmu.nearest(name, names()))


def names() -> tuple[str, ...]:
    """All names that `find` knows."""
    others = [name for row in _rows() for name in row.names]
    return tuple(sorted({*pmu.names(), *others}))


def _rows() -> tuple[X86 | Arm, ...]:
    return (*data().x86, *data().arm)


def _plain(name: str) -> str:
    return name.lower().replace(" ", "").replace("-", "").replace("_", "")


def _cores(cpuinfo: str) -> list[dict[str, str]]:
    """One mapping for each block of lines."""
    cores: list[dict[str, str]] = []
    for block in cpuinfo.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        core = {key.strip(): value.strip() for key, _, value in pairs}
        if core:
            cores.append(core)
    return cores


def _x86(core: Mapping[str, str], sys: Path) -> Processor:
    vendor, stepping = core["vendor_id"], _number(core.get("stepping", ""))
    family, model = _number(core["cpu family"]), _number(core["model"])
    seen = f"It is {vendor} family {family} ({family:#x}) model {model:#04x} stepping {stepping}."
    for row in data().x86:
        if row.vendor != vendor or row.family != family or (row.models and not _among(model, row.models)):
            continue
        if row.steppings[0] <= stepping <= row.steppings[1]:
            return _processor(_kinds(row, sys, seen), vendor, family, model, stepping)
    raise CannotMeasureError(
        "The floating-point events of this processor are not known.",
        seen=f"{seen} It is not taken for one of its neighbours, whose events may differ.",
        todo=_TODO,
    )


def _kinds(row: X86, sys: Path, seen: str) -> list[Kind]:
    if not row.kinds:
        return [Kind("cpu", row.microarchitecture)]
    found = []
    for name, table in row.kinds.items():
        cpus = _read(sys / "devices" / name / "cpus")
        if cpus:
            found.append(Kind(name, table, cpus))
    if not found:
        raise CannotMeasureError(
            "The kinds of cores of this processor cannot be told apart.",
            seen=f"{seen} It has {' and '.join(row.kinds.values())}, but the kernel names neither "
            f"{' nor '.join(row.kinds)} in /sys/devices (in a virtual machine that is usual).",
            todo="Use --counter instrumented.",
        )
    return found


def _arm(cores: list[dict[str, str]], sys: Path) -> Processor:
    kinds: dict[tuple[int, int], list[int]] = {}
    for core in cores:
        numbers = (_number(core["CPU implementer"]), _number(core.get("CPU part", "")))
        kinds.setdefault(numbers, []).append(_number(core.get("processor", "")))
    found = []
    for (implementer, part), cpus in kinds.items():
        rows = [row for row in data().arm if row.implementer == implementer and _among(part, row.parts)]
        if not rows:
            raise CannotMeasureError(
                "The floating-point events of this processor are not known.",
                seen=f"It has a core of implementer {implementer:#04x}, part {part:#05x}.",
                todo=_TODO,
            )
        found.append(Kind(_pmu_of(cpus[0], sys), rows[0].microarchitecture, _listed(cpus) if len(kinds) > 1 else ""))
    implementer, part = next(iter(kinds))
    return _processor(found, f"{implementer:#04x}", 0, part, _number(cores[0].get("CPU revision", "")))


def _pmu_of(cpu: int, sys: Path) -> str:
    """The PMU whose list of CPUs has `cpu`; only those of cores have a list of that name."""
    folder = sys / "bus" / "event_source" / "devices"
    for path in sorted(folder.glob("*/cpus")):
        if cpu in cpus_in(_read(path)):
            return path.parent.name
    return ""


def cpus_in(text: str) -> set[int]:
    """The numbers in a list such as "0-7,16"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _listed(cpus: Iterable[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


def _processor(kinds: list[Kind], vendor: str = "", family: int = 0, model: int = 0, stepping: int = 0) -> Processor:
    return Processor("+".join(kind.microarchitecture for kind in kinds), tuple(kinds), vendor, family, model, stepping)


def _among(number: int, numbers: Numbers) -> bool:
    return any(number == each if isinstance(each, int) else each[0] <= number <= each[1] for each in numbers)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
