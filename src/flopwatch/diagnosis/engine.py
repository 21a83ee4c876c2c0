"""The instrumented counter, tried now: its self-test, and a real program whose FLOP are known."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from flopwatch.counters import Availability, CommandOptions, CommandResult, Counter
from flopwatch.counters.instrumented import COUNTER, selftest
from flopwatch.diagnosis import tiny
from flopwatch.errors import FlopwatchError
from flopwatch.flops import Classified, classify_block
from flopwatch.subjects import elf

NAME = "instrumented"
WORKS = f"keeps all registers, and counted a program of {sum(tiny.EXPECTED.values()):,} FLOP exactly"


def trial(
    counter: Counter = COUNTER, selftest: Callable[[], Availability] = selftest.run, loader: str | None = None
) -> Availability:
    """Available, self-test passed, and a program counted through the same path as `stat` takes; never raises."""
    found = counter.available()
    if not found.ok:
        return found
    found = selftest()
    if not found.ok:
        return found
    try:
        return _count(counter, elf.inspect(sys.executable).loader if loader is None else loader)
    except (FlopwatchError, OSError) as error:
        return Availability(False, f"a program to try it on could not be counted ({error}).")


def _count(counter: Counter, loader: str) -> Availability:
    tried = dict.fromkeys((tempfile.gettempdir(), "/dev/shm", os.path.expanduser("~/.cache"), os.getcwd()))
    for place in tried:
        try:
            with tempfile.TemporaryDirectory(prefix="flopwatch-doctor-", dir=place) as folder:
                path = Path(folder) / "program"
                path.write_bytes(tiny.program(loader))
                path.chmod(0o700)
                if os.access(path, os.X_OK):
                    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
                    return _judge(counter.run_command([str(path)], CommandOptions(env=env)))
        except (FileNotFoundError, PermissionError):
            continue  # no such folder, or not ours
    return Availability(
        False,
        f"there is no folder for a program to try it on: files may not be executed in {', '.join(tried)}.",
        "Name a folder where they may: `TMPDIR=FOLDER flopwatch doctor`.",
    )


def _judge(result: CommandResult) -> Availability:
    if result.exit_code or result.signal:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        return Availability(False, f"a program that it counted ended with {how} instead of exit code 0.")
    missing = [*result.reasons, *(reason for image in result.processes for reason in image.reasons)]
    if missing or not all(image.complete for image in result.processes):
        return Availability(False, f"it did not count all of a program ({'; '.join(missing) or 'no reason known'}).")
    counted = Classified.total(
        classify_block(block) for image in result.processes for block in image.blocks
    ).tally.flop()
    if counted != tiny.EXPECTED:
        shown = ", ".join(f"{count:,} {dtype}" for dtype, count in counted.items()) or "nothing"
        wanted = ", ".join(f"{count:,} {dtype}" for dtype, count in tiny.EXPECTED.items())
        return Availability(False, f"it counted {shown} FLOP of a program that does {wanted}.")
    return Availability(True)
