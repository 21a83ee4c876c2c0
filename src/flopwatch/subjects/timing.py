"""How long a command takes when nothing looks at it: uninstrumented runs, with no output."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flopwatch.subjects import process


class Input:
    """The standard input of a command that is to run more than once.

    Nothing and a terminal are replaced by nothing in the timed runs; a regular file is read again from where it stood.
    A pipe cannot be read twice: `repeatable` is false if the first run may have read something from one.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._offset = 0
        self._state: tuple[int, int] | None = None
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            mode = 0  # standard input is closed
        self._file = stat.S_ISREG(mode)
        self._pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        if self._file:
            self._offset = os.lseek(descriptor, 0, os.SEEK_CUR)
        elif self._pipe:
            self._state = self._pipe_state()

    def repeatable(self) -> bool:
        """Whether a further run can be given the same input as the first; ask after the first run."""
        if not self._pipe:
            return True
        # A pipe that held nothing and changed nothing gave nothing to the first run.
        return self._state is not None and self._state[0] == 0 and self._state == self._pipe_state()

    def rewind(self) -> bool:
        """Make the next run that inherits this input read the same as the first; false if that cannot be."""
        if self._file:
            os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        return self.repeatable()

    def open(self) -> int:
        """A descriptor with that input; close it after use."""
        if not self._file:
            return os.open(os.devnull, os.O_RDONLY)
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY)
        os.lseek(descriptor, self._offset, os.SEEK_SET)
        return descriptor

    def _pipe_state(self) -> tuple[int, int]:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        events = sum(event for _, event in poll.poll(0))
        waiting = fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0\0\0\0")
        return struct.unpack("i", waiting)[0], events


@dataclass(frozen=True, slots=True)
class Timed:
    """Wall times in seconds of uninstrumented runs; `note` says why there are none or fewer than wanted."""

    seconds: tuple[float, ...]
    note: str = ""
    interrupted: bool = False


def time_command(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    given: Input,
    *,
    runs: int,
    expected: tuple[int, int],
    progress: Callable[[str], None] = lambda text: None,
) -> Timed:
    """Run a command `runs` times with its output thrown away.

    A run that does not end as `expected` (exit code, signal) did something else, so there is no time then.
    """
    if not given.repeatable():
        return Timed((), "not timed: the program's input is a pipe, which cannot be read a second time")
    seconds: list[float] = []
    for index in range(runs):
        progress(f"timing without instrumentation, run {index + 1} of {runs}")
        source = given.open()
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
            ended = process.run(argv, env, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finally:
            os.close(source)
        if ended.interrupted:
            return Timed(tuple(seconds), "timing was interrupted", interrupted=True)
        if (ended.exit_code, ended.signal) != expected:
            how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
            return Timed((), f"not timed: run a second time, the program ended differently ({how})")
        seconds.append(ended.seconds)
    return Timed(tuple(seconds))
