"""Counters: how events are seen. Each sibling offers `COUNTER`; its file name is the name typed after --counter.

A counter knows neither what an instruction is worth nor how to print; it hands over what ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Protocol, cast

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.events import Block, Reading
from flopwatch.flops.operations import DType
from flopwatch.flops.pmu import PmuTable
from flopwatch.subjects.elf import Program

NAMES = ("hardware", "instrumented")
"""In the order in which "auto" tries them."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a counter works here; if not, why, and what to do about it."""

    ok: bool
    reason: str = ""
    todo: str = ""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event as named by the user: a raw code or a software event, with FLOP per count if a weight was given."""

    name: str
    code: int = 0
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What a measurement asks of its counter.

    `by` is the axis of its rows, `dtypes` are those that must be seen and told apart, `apart` asks for all that this
    processor computes in, `once` says that the program must not run a second time, `events` names the events themselves.
    """

    by: str = ""
    convention: str = "pmu"
    lanes: str | None = None
    dtypes: frozenset[DType] = frozenset()
    apart: bool = False
    once: bool = False
    events: tuple[RawEvent, ...] = ()


ANYTHING = Needs()
"""No wishes."""


@dataclass(frozen=True, slots=True)
class KindReadings:
    """What the events of one kind of core counted, with the table that says what they are worth."""

    table: PmuTable
    readings: tuple[Reading, ...]
    vector_bits: int | None = None


@dataclass(frozen=True, slots=True)
class LabelledReadings:
    """What the events counted of one thread, and of all that it started, between settlements of one label."""

    label: int
    thread: str
    readings: KindReadings


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of a process's memory backed by `path` from byte `offset`; an empty path is memory without a file."""

    start: int
    end: int
    offset: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread that was followed; `complete` is false if it could not be counted to its end."""

    tid: int
    name: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ProcessImage:
    """One program image of one process: what it executed between its exec or fork and its end, or its next exec.

    `how` is how it came to be ("spawn", "fork", "vfork", "exec", "attach"); `reasons` say what is missing when it is
    not `complete`; each block's scope names its thread by number; a counter has either `blocks` or `readings`. `jit_map`
    is the text of the run-time code's own name table (lines of "start size name" in hexadecimal), if there is one.
    """

    pid: int
    parent: int = 0
    argv: tuple[str, ...] = ()
    how: str = "spawn"
    complete: bool = True
    reasons: tuple[str, ...] = ()
    threads: tuple[Thread, ...] = ()
    blocks: tuple[Block, ...] = ()
    regions: tuple[Region, ...] = ()
    jit_map: str = ""
    readings: tuple[KindReadings, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a counted command ended and what its processes executed; `signal` is 0 unless a signal ended it.

    `hidden` names instruction sets that were hidden from the program; `interrupted` is set by Ctrl-C and SIGTERM; `notes` say what
    was left out on purpose.
    """

    exit_code: int
    signal: int = 0
    processes: tuple[ProcessImage, ...] = ()
    hidden: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    interrupted: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How a command is to be counted; `imports` counts what a Python program executes while importing, too.

    `needs` is what `available` was asked with.
    """

    env: Mapping[str, str] | None = None
    imports: bool = False
    needs: Needs = ANYTHING


class Counter(Protocol):
    """A way of seeing what a program executes."""

    name: str

    def available(self, needs: Needs = ANYTHING) -> Availability:
        """Whether it works here, and can do what is asked of it; never raises."""

    def check(self, program: Program, *, running: bool = False) -> None:
        """Raise CannotMeasureError for a program that it cannot follow: from its start, or while it is running."""

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        """Run a command to its end, its input, output and signals untouched, and return what ran."""

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = ANYTHING) -> CommandResult:
        """Follow a running process while `wait()` blocks (it returns True if interrupted), then leave it running."""


def find(name: str = "auto", needs: Needs = ANYTHING) -> Counter:
    """The counter of that name, or for "auto" the first that works here and tells apart all that this processor computes in.

    Raises UsageError for a name that does not exist, CannotMeasureError for a counter that does not work here.
    """
    if name != "auto" and name not in NAMES:
        raise UsageError(f"There is no counter named {name!r}.", todo=f"Choose one of: auto, {', '.join(NAMES)}.")
    refusals = []
    if name == "auto":
        needs = replace(needs, apart=not needs.dtypes)
    for candidate in NAMES if name == "auto" else (name,):
        counter = cast(Counter, import_module(f"flopwatch.counters.{candidate}").COUNTER)
        availability = counter.available(needs)
        if availability.ok:
            return counter
        refusals.append((candidate, availability))
    raise CannotMeasureError(
        "No counter works here." if name == "auto" else f"The {name} counter does not work here.",
        seen=" ".join(f"{candidate}: {refusal.reason}" for candidate, refusal in refusals),
        todo=" ".join(refusal.todo for _, refusal in refusals if refusal.todo),
    )
