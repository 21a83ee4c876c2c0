"""Whether hardware can be trusted with what is asked for, on this machine: tables, permission, calibration."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from flopwatch import processors
from flopwatch.counters import Availability, Needs
from flopwatch.counters.hardware import cache
from flopwatch.counters.hardware.calibration import Calibration, Run, calibrate
from flopwatch.counters.hardware.loops import Runner, runnable
from flopwatch.counters.hardware.opening import Opened
from flopwatch.counters.hardware.perf_event import Kernel, Linux
from flopwatch.counters.hardware.plan import Kind, Plan, counters_of, plan, raw_plan, told_apart
from flopwatch.counters.hardware.refusals import INSTEAD
from flopwatch.counters.hardware.surroundings import Pmu, Surroundings, boot_id, processor_flags
from flopwatch.errors import CannotMeasureError, FlopwatchError
from flopwatch.flops import pmu
from flopwatch.flops.operations import DType

PR_SVE_GET_VL = 51  # include/uapi/linux/prctl.h; the answer's lower 16 bits are bytes
# Datatypes that a processor with one of these instruction sets may compute in, besides fp32 and fp64.
MORE = {
    DType.BF16: {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16", "svebf16"},
    DType.FP16: {"avx512_fp16", "amx_fp16", "asimdhp"},
}


@dataclass
class Policy:
    """What is known of this machine; everything that it asks the machine can be replaced by a test."""

    seen: Surroundings
    kernel: Kernel = field(default_factory=Linux)
    run: Run = field(default_factory=Runner)
    flags: frozenset[str] = field(default_factory=processor_flags)
    machine: str = field(default_factory=platform.machine)
    cached: Path | None = None
    find: Callable[[], processors.Processor] = processors.detect

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of cores that this machine has, with their events.

        Raises CannotMeasureError for a processor that is not known or has no such events.
        """
        alone = _smt_is_off()
        found = []
        for each in self.find().kinds:
            table = pmu.table(each.microarchitecture)
            mine = self._pmu(each.pmu)
            found.append(Kind(mine, table, counters_of(table.budget, alone=alone), _vector_bits(table)))
        return tuple(found)

    def _pmu(self, name: str) -> Pmu:
        for each in self.seen.pmus:
            if each.name == name or (not name and len(self.seen.pmus) == 1):
                return each
        raise CannotMeasureError(
            "The hardware counter does not work here.",
            seen=f"The kernel shows no counters for the cores named {name or 'cpu'}; their CPUs may be offline.",
            todo="Bring the CPUs online again, or use --counter instrumented.",
        )

    @cached_property
    def calibrated(self) -> tuple[tuple[Kind, Calibration], ...]:
        """Each kind of core with what calibration found: kept from an earlier run, or found now in some milliseconds.

        Raises CannotMeasureError if the kernel refuses to open an event.
        """
        name = self._key()
        found = cache.load(name, self.cached)
        if found is None or len(found) != len(self.kinds):
            loops = runnable(self.flags, self.machine)
            try:
                found = tuple(calibrate(self.kernel, kind, loops, self.run, seen=self.seen) for kind in self.kinds)
            except OSError as error:
                raise CannotMeasureError(
                    "The counters could not be calibrated.",
                    seen=f"The system gives no executable memory for the loops: {error.strerror}.",
                    todo=f"{INSTEAD}.",
                ) from error
            if all(each.lasting for each in found):
                cache.save(name, found, self.cached)
        return tuple(
            (replace(kind, counters=each.counters), each) for kind, each in zip(self.kinds, found, strict=True)
        )

    def _key(self) -> str:
        """Everything that a calibration depends on; a table that was changed makes another key, too."""
        tables = [hashlib.sha256(msgspec.json.encode(kind.table)).hexdigest() for kind in self.kinds]
        found = self.find()
        numbers = f"{found.name} {found.vendor} {found.family} {found.model} {found.stepping}"
        kinds = [f"{kind.pmu.name} {kind.pmu.type} {kind.counters} {kind.vector_bits}" for kind in self.kinds]
        allowed = str(sorted(os.sched_getaffinity(0))) if len(self.kinds) > 1 else ""
        return cache.key(numbers, *kinds, *tables, self.seen.release, boot_id(), str(self.seen.watchdog), allowed)

    @property
    def facts(self) -> tuple[str, ...]:
        """Sentences that belong to every record: what the events cannot see or split, and what calibration found."""
        found: list[str] = []
        for kind, calibration in self.calibrated:
            of = f" ({kind.pmu.name})" if len(self.calibrated) > 1 else ""
            found += [f"{sentence}{of}" for sentence in _sentences(kind.table)]
            if calibration.facts:
                found.append(f"calibrated here{of}: {'; '.join(calibration.facts)}")
        return tuple(found)

    def plan(self, needs: Needs) -> Plan:
        """The events for what is asked; those named by the user as they are.

        Raises CannotMeasureError if they do not fit on the counters in as many runs as may be made.
        """
        if needs.events:
            return raw_plan(needs.events, self.seen.pmus, self._known())
        return plan([kind for kind, _ in self.calibrated], once=needs.once)

    def _known(self) -> pmu.PmuTable | None:
        try:
            return self.kinds[0].table
        except FlopwatchError:
            return None

    def judge(self, needs: Needs) -> Availability:
        """Whether hardware can do what is asked; never raises."""
        try:
            return self._named(needs) if needs.events else self._trusted(needs)
        except FlopwatchError as error:
            seen = error.seen or error.happened
            return Availability(False, _begin_small(seen), error.todo)

    def _named(self, needs: Needs) -> Availability:
        """Events that the user names need no table and no calibration, but the kernel must open them."""
        run = self.plan(needs).runs[0]
        with Opened(self.kernel, run, seen=self.seen):
            return Availability(True)

    def _trusted(self, needs: Needs) -> Availability:
        for kind, calibration in self.calibrated:
            if not calibration.passed:
                more = f" ({len(calibration.wrong) - 1} more)" if len(calibration.wrong) > 1 else ""
                return Availability(
                    False,
                    f"calibration on {kind.table.title} failed: {calibration.wrong[0]}{more}",
                    calibration.todo or f"{INSTEAD}.",
                )
        wanted = set(needs.dtypes)
        if needs.apart:
            wanted |= {DType.FP32, DType.FP64} | {dtype for dtype, sets in MORE.items() if sets & self.flags}
        doubtful = next((kind.table for kind, _ in self.calibrated if wanted and kind.table.can != "yes"), None)
        if doubtful is not None:
            return Availability(
                False,
                f"the events of {doubtful.title} cannot be relied on: {_begin_small(doubtful.because)}",
                f"{INSTEAD}, or --counter hardware without --dtype for what they count.",
            )
        made = self.plan(needs)
        missing = told_apart(made, wanted)
        if missing is None:
            return Availability(True)
        sentences = [sentence for kind in made.kinds for sentence in kind.table.cannot]
        why = f" {sentences[0]}" if sentences else ""
        return Availability(
            False,
            f"{made.kinds[0].table.title} cannot tell {missing} from other datatypes, or does not see it.{why}",
            f"{INSTEAD}, or --counter hardware without --dtype for one total.",
        )


def _sentences(table: pmu.PmuTable) -> tuple[str, ...]:
    return tuple(filter(None, (table.because, *table.overcounts, *table.cannot)))


def _begin_small(sentence: str) -> str:
    """A sentence as the second half of one; names that are all capitals stay so."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _vector_bits(table: pmu.PmuTable) -> int | None:
    """The bits of this thread's SVE vectors, for a table that has an event which counts by them."""
    if not any(row.per_bits for row in table.rows):
        return None
    try:
        answer = ctypes.CDLL(None).prctl(PR_SVE_GET_VL, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return table.vector_bits
    return (answer & 0xFFFF) * 8 if answer > 0 else table.vector_bits


def _smt_is_off() -> bool:
    try:
        return Path("/sys/devices/system/cpu/smt/active").read_text().strip() == "0"
    except OSError:
        return False


def limits(needs: Needs, axes: Sequence[str] = ("library", "symbol", "instruction")) -> Availability | None:
    """What no hardware counter can do, or None if nothing of that kind is asked."""
    if needs.by in axes:
        return Availability(False, f"its events do not say in which {needs.by} they happened.", f"{INSTEAD}.")
    if needs.lanes == "active" or (needs.convention == "arithmetic" and needs.lanes is None):
        return Availability(False, "its events count lanes that a mask switched off.", f"{INSTEAD}, or --lanes full.")
    if needs.convention == "arithmetic":
        return Availability(
            False,
            "its events do not tell minimum and maximum from other operations.",
            f"{INSTEAD}, or --convention pmu.",
        )
    return None
