"""The hardware counter: the processor's own events through perf_event_open, checked before they are trusted.

See docs/counters.md. Nothing heavy is loaded before it is known that this machine has counters at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flopwatch.counters import ANYTHING, Availability, CommandOptions, CommandResult, Needs
from flopwatch.counters.hardware import refusals, surroundings
from flopwatch.errors import CannotMeasureError
from flopwatch.subjects import elf

if TYPE_CHECKING:
    from flopwatch.counters.hardware.inprocess import Engine
    from flopwatch.counters.hardware.policy import Policy

__all__ = ["COUNTER", "HardwareCounter"]


class HardwareCounter:
    """Counts what the processor's own events count, at no cost to the program; refuses where these cannot be trusted."""

    name = "hardware"

    def __init__(self, policy: Policy | None = None) -> None:
        self._given = policy
        self._made: Policy | None = policy

    def available(self, needs: Needs = ANYTHING) -> Availability:
        """Whether this processor's events can be opened, count right, and can do what is asked of them; never raises."""
        if self._given is None:
            seen = surroundings.look()
            software = bool(needs.events) and not any(event.code for event in needs.events)
            if not software and (refusal := refusals.at_sight(seen)) is not None:
                return refusal
        from flopwatch.counters.hardware.policy import limits

        return limits(needs) or self._policy().judge(needs)

    def check(self, program: elf.Program, *, running: bool = False) -> None:
        """Raise CannotMeasureError for a program that raises its privileges: the kernel takes the events away then."""
        if not running and (raised := elf.raises_privileges(program.path)):
            raise CannotMeasureError(
                f"{program.path!r} cannot be counted: it is a {raised} program, from which the kernel takes all events away.",
                todo="Run flopwatch as the user that the program changes to, or count a copy without that permission.",
            )

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        """Run a command to its end, once for each set of events that fits on the counters."""
        from flopwatch.counters.hardware import running

        policy = self._policy()
        made = policy.plan(options.needs)
        return running.run(argv, options, made, policy.kernel, policy.seen, self._facts(options.needs))

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = ANYTHING) -> CommandResult:
        """Count a running process and what it starts from here on while `wait()` blocks."""
        from dataclasses import replace

        from flopwatch.counters.hardware import running

        policy = self._policy()
        made = policy.plan(replace(needs, once=True))
        return running.attach(pid, wait, made, policy.kernel, policy.seen, self._facts(needs))

    def engine(self, needs: Needs = ANYTHING) -> Engine:
        """An engine that counts inside this process; one run of events, so that a total may take the place of datatypes."""
        from dataclasses import replace

        from flopwatch.counters.hardware.inprocess import Engine

        policy = self._policy()
        return Engine(lambda: policy.plan(replace(needs, once=True)), policy.kernel, policy.seen, self._facts(needs))

    def _facts(self, needs: Needs) -> tuple[str, ...]:
        if needs.events:
            return ("the events were named by the user and are not checked",)
        return self._policy().facts

    def _policy(self) -> Policy:
        if self._made is None:
            from flopwatch.counters.hardware.policy import Policy

            self._made = Policy(surroundings.look())
        return self._made


COUNTER = HardwareCounter()
