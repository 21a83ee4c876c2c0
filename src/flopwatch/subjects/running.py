"""A program that is running already: may we look into it, and when does it end?"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from types import FrameType

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.subjects import elf

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def inspect(pid: int) -> elf.Program:
    """The program that process `pid` runs.

    Raises UsageError if there is no such process, CannotMeasureError if we may not look into it.
    """
    if pid == os.getpid():
        raise UsageError(f"Process {pid} is flopwatch itself.")
    folder = Path(f"/proc/{pid}")
    try:
        owner = folder.stat().st_uid
        fields = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise UsageError(f"There is no process {pid}.", todo="It may have ended; look with `ps`.") from error
    if fields.get("State", "").startswith(("Z", "X")):
        raise UsageError(f"Process {pid} has ended already.")
    if os.geteuid() not in (0, owner):
        raise CannotMeasureError(
            f"Process {pid} belongs to another user.",
            seen=f"Its user id is {owner}, ours {os.geteuid()}.",
            todo="Use sudo.",
        )
    _check_ptrace(pid, fields.get("TracerPid", "0").strip())
    try:
        path = os.readlink(folder / "exe")
    except FileNotFoundError as error:
        raise CannotMeasureError(f"Process {pid} is a thread of the kernel; there is no program to count.") from error
    except PermissionError as error:
        raise CannotMeasureError(f"The system does not let us look into process {pid}.", todo="Use sudo.") from error
    program = elf.inspect(f"/proc/{pid}/exe")
    return elf.Program(path.removesuffix(" (deleted)"), program.bits, program.machine, program.loader)


def _check_ptrace(pid: int, tracer: str) -> None:
    if tracer != "0":
        raise CannotMeasureError(f"Process {pid} is being traced by process {tracer}.", todo="End that debugger first.")
    try:
        scope = int(PTRACE_SCOPE.read_text())
    except (OSError, ValueError):
        return
    if scope >= 3 or (scope >= 1 and os.geteuid() != 0):
        raise CannotMeasureError(
            "Attaching to a running process is forbidden here.",
            seen=f"{PTRACE_SCOPE} is {scope}.",
            todo="Start the program under flopwatch instead" + ("." if scope >= 3 else ", or use sudo."),
        )


def wait_for_end(pid: int) -> bool:
    """Block until process `pid` ends (False) or Ctrl-C or SIGTERM arrives here (True)."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    reader, writer = os.pipe()

    def stop(number: int, frame: FrameType | None) -> None:
        os.write(writer, b"!")

    earlier = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ready, _, _ = select.select([process, reader], [], [])
        return reader in ready
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        for descriptor in (process, reader, writer):
            os.close(descriptor)
