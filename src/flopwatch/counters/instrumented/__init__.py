"""The instrumented counter: exact, on any x86-64 Linux, without a PMU; see docs/how-it-counts.md."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence

from flopwatch.counters import ANYTHING, Availability, CommandOptions, CommandResult, Needs
from flopwatch.counters.instrumented import library
from flopwatch.counters.instrumented.inprocess import Engine, LabelledBlock
from flopwatch.subjects import elf

__all__ = ["COUNTER", "Engine", "InstrumentedCounter", "LabelledBlock"]


class InstrumentedCounter:
    """Counts every basic block that a program executes, by running a translated copy of its code."""

    name = "instrumented"

    def available(self, needs: Needs = ANYTHING) -> Availability:
        """Whether this is x86-64 Linux and the engine was built; it can do all but count events by name. Never raises."""
        if needs.events:
            return Availability(False, "it has no events.", "Leave -e out.")
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return Availability(
                False,
                f"it needs x86-64 Linux, since its engine translates x86-64 code, and this is {platform.machine()} {sys.platform}.",
                "Run flopwatch on an x86-64 Linux machine.",
            )
        if library.find() is None:
            return Availability(
                False,
                "its engine has not been built.",
                "Install flopwatch with a C compiler at hand: apt install gcc, then pip install flopwatch.",
            )
        return Availability(True)

    def check(self, program: elf.Program, *, running: bool = False) -> None:
        """Raise CannotMeasureError for a program that the engine cannot follow: from its start, or while it is running."""
        elf.check(program, running=running)

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        """Run a command to its end, its input, output and signals untouched, and return what ran."""
        from flopwatch.counters.instrumented import commands

        return commands.run(argv, options)

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = ANYTHING) -> CommandResult:
        """Follow a running process while `wait()` blocks, then leave it running."""
        from flopwatch.counters.instrumented import attaching

        return attaching.run(pid, wait)


COUNTER = InstrumentedCounter()
