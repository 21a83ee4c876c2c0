"""Run a program to its end the way `perf stat` does: its input, output and signals are its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import IO

from flopwatch.errors import CannotMeasureError, UsageError

Stream = int | IO[bytes] | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit code, or the signal that ended it (0 if none), and the wall time in seconds.

    `interrupted` is set if Ctrl-C or a signal to end came for it while it ran, whatever it made of that.
    """

    exit_code: int
    signal: int
    seconds: float
    interrupted: bool = False
    pid: int = 0


def run(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
) -> Ended:
    """Run a program and wait for it. While it runs, SIGTERM and SIGHUP are forwarded to it.

    Ctrl-C reaches it from the terminal: the first is left to it (`interrupted` is set), the second kills it.
    Raises UsageError if the program cannot be started.
    """
    child: subprocess.Popen[bytes] | None = None
    pending: list[int] = []
    presses = 0
    told_to_end = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses > 1 and child is not None:
            child.kill()

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal told_to_end
        told_to_end = True
        if child is None:
            pending.append(number)
        else:
            child.send_signal(number)

    handlers = {
        signal.SIGINT: on_interrupt,
        signal.SIGQUIT: on_interrupt,
        signal.SIGTERM: forward,
        signal.SIGHUP: forward,
    }
    # An ignored signal stays ignored (nohup), here and in the child.
    earlier = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        start = time.perf_counter()
        child = _start(argv, env, stdin, stdout, stderr)
        for number in pending:
            child.send_signal(number)
        status = child.wait()
        seconds = time.perf_counter() - start
    finally:
        for number, previous in earlier.items():
            signal.signal(number, previous)
    interrupted = told_to_end or presses > 0
    if status < 0:
        return Ended(128 - status, -status, seconds, interrupted, child.pid)
    return Ended(status, 0, seconds, interrupted, child.pid)


def _start(
    argv: Sequence[str], env: Mapping[str, str] | None, stdin: Stream, stdout: Stream, stderr: Stream
) -> subprocess.Popen[bytes]:
    try:
        # Python ignores SIGPIPE for itself; the program must not inherit that (restore_signals sees to it).
        return subprocess.Popen(
            argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr, restore_signals=True, close_fds=False
        )
    except FileNotFoundError as error:
        raise UsageError(f"The command {argv[0]!r} was not found.", todo="Check the spelling.") from error
    except PermissionError as error:
        raise UsageError(f"The command {argv[0]!r} may not be executed.", seen=f"{error.strerror}.") from error
    except OSError as error:
        raise CannotMeasureError(
            f"The command {argv[0]!r} could not be started.", seen=f"{os.strerror(error.errno or 0)}."
        ) from error
