"""Measure a command or a running program: subject, counter, attribution, record, in this order."""

from __future__ import annotations

import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import msgspec

from flopwatch import counters
from flopwatch.attribution import Folded, fold_processes
from flopwatch.counters import CommandOptions, CommandResult, Counter, KindReadings, Needs, ProcessImage, RawEvent
from flopwatch.errors import UsageError
from flopwatch.flops.operations import DType
from flopwatch.record import EventCount, Process, Record, Repeat, Unknown, cells_of
from flopwatch.subjects import elf, process, running
from flopwatch.subjects.timing import Input, Timed, time_command
from flopwatch.symbols import read_jit_map

Progress = Callable[[str], None]


def _silent(text: str) -> None:
    pass


def measure_command(
    command: Sequence[str],
    *,
    counter: str = "auto",
    repeat: int = 1,
    timed: bool = True,
    imports: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    by: str | None = None,
    dtypes: Sequence[str] = (),
    events: Sequence[RawEvent] = (),
    env: Mapping[str, str] | None = None,
    progress: Progress = _silent,
) -> Record:
    """Count what a command executes, `repeat` times; with `timed`, run it as often again, uninstrumented, for its wall time.

    With repetition the record holds the run with the middle total. `by` is the axis that rows are wanted of, `dtypes` those
    that have to be told apart, `events` hardware events to count instead of this processor's own choice.
    Raises UsageError for a command that cannot be run, CannotMeasureError for one that cannot be counted here.
    """
    if not command:
        raise UsageError(
            "There is no command to measure.", todo="Write it after two dashes: flopwatch stat -- COMMAND."
        )
    if repeat < 1:
        raise UsageError(f"A command cannot be repeated {repeat} times.", todo="Give a number from 1 on.")
    search = None if env is None else env.get("PATH", os.defpath)
    program = elf.inspect(elf.locate(command[0], path=search))
    needs = Needs(by or "", convention, lanes, _dtypes(dtypes), once=not timed, events=tuple(events))
    chosen = counters.find(counter, needs)
    chosen.check(program)
    given = Input()
    runs: list[Record] = []
    for index in range(repeat):
        if index and not given.rewind():
            note = "run once only: the program's input is a pipe, which cannot be read a second time"
            runs[0] = msgspec.structs.replace(runs[0], notes=(*runs[0].notes, note))
            break
        if repeat > 1:
            progress(f"counting, run {index + 1} of {repeat}")
        since = time.time()
        result = chosen.run_command(command, CommandOptions(env, imports, needs))
        runs.append(_record(result, chosen, command, since, convention=convention, lanes=lanes))
        if result.interrupted:
            timed = False
            break
    record = _middle(runs)
    if not timed:
        return record
    if record.signal:
        # What was killed from outside may run for ever the second time.
        return _with_times(record, Timed((), f"not timed: the program was ended by {signal_name(record.signal)}"))
    expected = (record.exit_code, record.signal)
    return _with_times(record, time_command(command, env, given, runs=repeat, expected=expected, progress=progress))


def measure_process(
    pid: int,
    *,
    during: Sequence[str] = (),
    counter: str = "auto",
    convention: str = "pmu",
    lanes: str | None = None,
    by: str | None = None,
    dtypes: Sequence[str] = (),
    events: Sequence[RawEvent] = (),
) -> Record:
    """Count what the running process `pid` executes until it ends, until Ctrl-C, or while the command `during` runs.

    The process is left running; `by`, `dtypes` and `events` as for a command.
    Raises UsageError if there is no such process, CannotMeasureError if it may not be looked into.
    """
    program = running.inspect(pid)
    if during:
        elf.locate(during[0])
    needs = Needs(by or "", convention, lanes, _dtypes(dtypes), once=True, events=tuple(events))
    chosen = counters.find(counter, needs)
    chosen.check(program, running=True)

    def wait() -> bool:
        if during:
            return process.run(during).interrupted
        return running.wait_for_end(pid)

    since = time.time()
    command = _command_line(pid) or (program.path,)
    result = chosen.attach(pid, wait, needs)
    # Ctrl-C is the usual way to end this, and takes nothing away from what was counted until then.
    return _record(result, chosen, command, since, convention=convention, lanes=lanes, subject="process")


def _record(
    result: CommandResult,
    counter: Counter,
    command: Sequence[str],
    since: float,
    *,
    convention: str,
    lanes: str | None,
    subject: str = "command",
) -> Record:
    images = [_with_jit_map(image, since) for image in result.processes]
    names = process_names(images)
    folded = fold_processes(images, names)
    partial = list(result.reasons)
    if result.interrupted and subject == "command":
        partial.append("Ctrl-C or a signal to end came: the program may not have run to its end")
    elif result.signal:
        partial.append(f"the program was ended by {signal_name(result.signal)}; it was counted until then")
    for image, name in zip(images, names, strict=True):
        reasons = image.reasons or (() if image.complete else ("not counted to its end",))
        partial += [f"process {name}: {reason}" for reason in reasons]
        lost = sum(not thread.complete for thread in image.threads)
        if lost:
            partial.append(f"process {name}: {lost} of {len(image.threads)} threads not counted to their end")
    partial += folded.partial
    return Record(
        counter=counter.name,
        command=tuple(command),
        subject=subject,
        convention=convention,
        lanes=lanes,
        complete=not partial,
        partial=tuple(dict.fromkeys(partial)),
        hidden=result.hidden,
        notes=result.notes,
        exit_code=result.exit_code,
        signal=result.signal,
        processes=tuple(_process(image, name) for image, name in zip(images, names, strict=True)),
        unknown=_unknown(folded),
        events=events_of(kind for image in images for kind in image.readings),
        vector_instructions=folded.vector_instructions,
        machine=machine(),
        versions=versions(),
        cells=cells_of(folded.cells),
    )


def _dtypes(names: Sequence[str]) -> frozenset[DType]:
    try:
        return frozenset(DType(name) for name in names)
    except ValueError as error:
        raise UsageError(f"{error}.", todo=f"Choose from: {', '.join(DType)}.") from error


def events_of(kinds: Iterable[KindReadings]) -> tuple[EventCount, ...]:
    """The events of readings, each with the sum of its counts; those of several kinds of cores apart."""
    found: dict[tuple[str, str], EventCount] = {}
    several: dict[str, None] = {}
    for kind in kinds:
        several[kind.table.title] = None
        for reading in kind.readings:
            row = kind.table.find(reading.name, reading.code)
            key = (reading.name, kind.table.title)
            earlier = found[key].count if key in found else 0
            code = f"{reading.code:x}" if reading.code else ""
            weight = row.weight if row is not None else None
            found[key] = EventCount(reading.name, code, earlier + reading.count, weight, kind.table.title)
    if len(several) > 1:
        return tuple(found.values())
    return tuple(msgspec.structs.replace(each, cores="") for each in found.values())


def _process(image: ProcessImage, name: str) -> Process:
    return Process(
        name, image.pid, image.parent, image.argv, image.how, image.complete, image.reasons, len(image.threads)
    )


def _unknown(folded: Folded) -> tuple[Unknown, ...]:
    return tuple(
        Unknown(name, count) for name, count in sorted(folded.unknown.items(), key=lambda item: (-item[1], item[0]))
    )


def signal_name(number: int) -> str:
    """A signal by its name, or by its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def process_names(images: Sequence[ProcessImage]) -> list[str]:
    """A name for each image, its number and its program; a process that runs one program twice gets both told apart."""
    names: list[str] = []
    for image in images:
        name = f"{image.pid} {Path(image.argv[0]).name if image.argv else '?'}"
        earlier = sum(other == name or other.startswith(f"{name} #") for other in names)
        names.append(f"{name} #{earlier + 1}" if earlier else name)
    return names


def _with_jit_map(image: ProcessImage, since: float) -> ProcessImage:
    text = image.jit_map or read_jit_map(image.pid, since)
    return image if text == image.jit_map else replace(image, jit_map=text)


def _middle(runs: list[Record]) -> Record:
    """The run with the middle FLOP total, knowing of all runs."""
    if len(runs) == 1:
        return runs[0]
    ordered = sorted(runs, key=lambda run: sum(run.flop().values()))
    middle = ordered[(len(ordered) - 1) // 2]
    repeats = tuple(Repeat({str(dtype): flop for dtype, flop in run.flop().items()}, run.complete) for run in runs)
    partial = tuple(dict.fromkeys(reason for run in runs for reason in run.partial))
    failed = next((run for run in runs if run.exit_code), middle)
    return msgspec.structs.replace(
        middle, repeats=repeats, complete=not partial, partial=partial, exit_code=failed.exit_code, signal=failed.signal
    )


def _with_times(record: Record, timed: Timed) -> Record:
    return msgspec.structs.replace(
        record,
        seconds=statistics.median(timed.seconds) if timed.seconds else None,
        timed_seconds=timed.seconds,
        notes=(*record.notes, timed.note) if timed.note else record.notes,
    )


def _command_line(pid: int) -> tuple[str, ...]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words[:-1])


def machine() -> dict[str, str]:
    """The machine in words: processor, its family-model-stepping, kernel, operating system, CPUs usable here."""
    fields = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
    except OSError:
        pass
    numbers = "-".join(fields.get(key, "?") for key in ("vendor_id", "cpu family", "model", "stepping"))
    return {
        "processor": fields.get("model name", platform.processor() or "unknown"),
        "cpuid": numbers,
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "cpus": str(len(os.sched_getaffinity(0))),
    }


def versions() -> dict[str, str]:
    """The versions of what made the record."""
    found = {"python": platform.python_version()}
    for package in ("flopwatch", "iced-x86"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
