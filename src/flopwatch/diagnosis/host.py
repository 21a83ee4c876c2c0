"""The machine as the diagnosis sees it: files below a root, commands, libraries and packages, each of which a test can play."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from flopwatch.counters.hardware import surroundings

MOST = 1 << 20  # bytes that are read of any file


class Ran(NamedTuple):
    """How a command ended, and what it printed on stdout."""

    exit_code: int
    out: str


def run(argv: Sequence[str], seconds: float) -> Ran | None:
    """Run a command for at most so many seconds; None if it is not there or did not end in time."""
    try:
        ended = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Ran(ended.returncode, ended.stdout.decode(errors="replace"))


def version(package: str) -> str | None:
    """The version of an installed package, without importing it; None if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def load(library: str) -> str:
    """Load a shared library; the reason why it cannot be, or nothing.

    A process of its own does it: what a library does when it is loaded, and dies of, is no business of this one.
    """
    ran = run((sys.executable, "-c", _LOAD, library), 20)
    if ran is None:
        return f"{library}: loading it does not end"
    return (
        ran.out.strip() if ran.exit_code == 0 else f"{library}: loading it ends the process (exit code {ran.exit_code})"
    )


_LOAD = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print(error)
"""


@dataclass(frozen=True)
class Host:
    """Where facts come from; the defaults are the machine that this runs on."""

    root: Path = Path("/")
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    system: str = sys.platform
    machine: str = field(default_factory=platform.machine)
    run: Callable[[Sequence[str], float], Ran | None] = run
    version: Callable[[str], str | None] = version
    load: Callable[[str], str] = load
    python: str = sys.executable
    site: tuple[str, ...] = tuple(path for path in sys.path if path.endswith(("site-packages", "dist-packages")))

    def read(self, path: str) -> str:
        """The text of a file without blanks and zero bytes around it; empty if it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(MOST).decode(errors="replace").strip("\0 \t\n")
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """The number that a file holds, or None."""
        text = self.read(path)
        return int(text) if text.lstrip("-").isdigit() else None

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return (self.root / path).exists()

    def glob(self, pattern: str) -> list[str]:
        """Paths that fit, relative to the root, in order of their names with numbers as numbers."""
        try:
            found = [str(path.relative_to(self.root)) for path in self.root.glob(pattern)]
        except OSError:
            return []
        return sorted(found, key=lambda path: [(len(part), part) for part in path.split("/")])

    def output(self, *argv: str, seconds: float = 20) -> str:
        """What a command prints; empty if it is not there, fails or does not end."""
        ran = self.run(argv, seconds)
        return ran.out.strip() if ran is not None and ran.exit_code == 0 else ""

    def cpuinfo(self) -> list[dict[str, str]]:
        """The fields of each block of /proc/cpuinfo: CPUs, and on some machines one for the whole."""
        blocks = []
        for text in self.read("proc/cpuinfo").split("\n\n"):
            pairs = [line.partition(":") for line in text.splitlines() if ":" in line]
            if pairs:
                blocks.append({key.strip(): value.strip() for key, _, value in pairs})
        return blocks

    def surroundings(self) -> surroundings.Surroundings:
        """What stands between programs and the hardware's counters."""
        found = surroundings.look(self.root, self.env)
        return replace(found, system=self.system, machine=self.machine)
