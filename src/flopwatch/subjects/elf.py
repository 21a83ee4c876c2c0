"""What kind of program a file is, read from its first bytes; nothing is run."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flopwatch.errors import CannotMeasureError, UsageError

X86_64 = 62
MACHINES = {3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "s390", 40: "Arm", 183: "AArch64"}
MACHINES |= {X86_64: "x86-64", 243: "RISC-V", 258: "LoongArch"}
PT_INTERP = 3
LONGEST_PATH = 4096
NESTED_SCRIPTS = 5  # the kernel follows about as many #! lines


@dataclass(frozen=True, slots=True)
class Program:
    """A program file: `loader` is its dynamic loader ("" for a static program), `scripts` the #! files that led to it."""

    path: str
    bits: int
    machine: int
    loader: str
    scripts: tuple[str, ...] = ()

    @property
    def machine_name(self) -> str:
        """The processor family in words."""
        return MACHINES.get(self.machine, f"machine {self.machine}")


def locate(command: str, *, path: str | None = None) -> str:
    """The file that a command name stands for, looked up as execvp does; raises UsageError if there is none."""
    if os.sep in command:
        if not os.path.exists(command):
            raise UsageError(f"There is no file {command!r}.", todo="Check the spelling of the command.")
        if os.path.isdir(command):
            raise UsageError(f"{command!r} is a folder, not a program.")
        if not os.access(command, os.X_OK):
            raise UsageError(
                f"{command!r} is not executable.", todo=f"Run `chmod +x {command}`, or name its interpreter."
            )
        return command
    found = shutil.which(command, path=path)
    if found is None:
        hint = f"Write ./{command} for the file in this folder." if os.path.isfile(command) else "Check the spelling."
        raise UsageError(f"The command {command!r} was not found in any folder of PATH.", todo=hint)
    return found


def inspect(path: str) -> Program:
    """What the file at `path` is, through #! lines to the interpreter that will run.

    Raises UsageError if it is no program at all, or cannot be read.
    """
    scripts: list[str] = []
    while True:
        try:
            with Path(path).open("rb") as file:
                head = file.read(4096)
                if head.startswith(b"\x7fELF"):
                    return _read_elf(path, head, file.seek, file.read, tuple(scripts))
        except OSError as error:
            # Execute permission without read permission is legal, and nothing can be said about such a file.
            raise CannotMeasureError(f"{path!r} cannot be read: {error.strerror}.") from error
        interpreter = _interpreter(head)
        if not interpreter:
            seen = "It is empty." if not head else "It is neither an ELF program nor a script with a #! line."
            raise UsageError(
                f"{path!r} is not a program.", seen=seen, todo="Name its interpreter, for example `sh FILE`."
            )
        scripts.append(path)
        if len(scripts) > NESTED_SCRIPTS:
            raise UsageError(f"{scripts[0]!r} leads through more than {NESTED_SCRIPTS} #! lines.")
        if not os.path.exists(interpreter):
            raise UsageError(f"{path!r} asks for the interpreter {interpreter!r}, which does not exist.")
        path = interpreter


def check(program: Program, *, running: bool = False) -> None:
    """Raise CannotMeasureError for a program that instrumentation cannot follow: from its start, or while it is running."""
    via = f" (the interpreter of {program.scripts[0]!r})" if program.scripts else ""
    name = f"{program.path!r}{via}"
    if program.bits != 64 or program.machine != X86_64:
        raise CannotMeasureError(
            f"{name} cannot be counted: it is built for {program.machine_name} ({program.bits} bit).",
            todo="The instrumented counter understands 64-bit x86 programs.",
        )
    if running:
        return  # the engine comes by itself, and the system says who may look into what
    if not program.loader:
        raise CannotMeasureError(
            f"{name} cannot be counted: it is statically linked.",
            todo="The instrumented counter enters through the dynamic loader; link the program dynamically.",
        )
    if raised := raises_privileges(program.path):
        raise CannotMeasureError(
            f"{name} cannot be counted: it is a {raised} program, and the system lets no one look into those.",
            todo="Run flopwatch as the user that the program changes to, or count a copy without that permission.",
        )


def raises_privileges(path: str) -> str:
    """How running this file would raise privileges ("setuid", "setgid", "privileged"), or "" if it would not."""
    status = os.stat(path)
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        return "setuid"
    if status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP and status.st_gid != os.getegid():
        return "setgid"
    if os.geteuid() != 0:
        try:
            if os.getxattr(path, "security.capability"):
                return "privileged"
        except OSError:
            pass  # no capabilities, or a file system that has none
    return ""


def _interpreter(head: bytes) -> str:
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].split(b"\n", 1)[0].split()
    return os.fsdecode(words[0]) if words else ""


def _read_elf(
    path: str, head: bytes, seek: Callable[[int], int], read: Callable[[int], bytes], scripts: tuple[str, ...]
) -> Program:
    broken = UsageError(f"{path!r} is not a program.", seen="It begins like an ELF file but is cut short or damaged.")
    try:
        bits = {1: 32, 2: 64}[head[4]]
        order = {1: "<", 2: ">"}[head[5]]
        kind, machine = struct.unpack_from(order + "HH", head, 16)
        if bits == 64:
            (table,) = struct.unpack_from(order + "Q", head, 32)
            size, count = struct.unpack_from(order + "HH", head, 54)
        else:
            (table,) = struct.unpack_from(order + "I", head, 28)
            size, count = struct.unpack_from(order + "HH", head, 42)
    except (KeyError, IndexError, struct.error) as error:
        raise broken from error
    if kind not in (2, 3):
        raise UsageError(f"{path!r} is not a program.", seen="It is an ELF object or core file, not an executable.")
    try:
        seek(table)
        entries = read(size * count)
        loader = ""
        for index in range(count):
            entry = entries[index * size : (index + 1) * size]
            if struct.unpack_from(order + "I", entry)[0] == PT_INTERP:
                offset, length = struct.unpack_from(order + ("8xQ16xQ" if bits == 64 else "4xI8xI"), entry)
                seek(offset)
                loader = os.fsdecode(read(min(length, LONGEST_PATH)).rstrip(b"\0"))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise broken from error
    return Program(path, bits, machine, loader, scripts)
