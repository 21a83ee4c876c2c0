"""Machines of tests/data/machines, set up as folders and played by a `Host` and a kernel that answers as theirs does."""

from __future__ import annotations

import errno
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from flopwatch import processors
from flopwatch.counters import Availability, Needs
from flopwatch.counters.hardware import refusals
from flopwatch.counters.hardware.perf_event import Attr, Kernel
from flopwatch.counters.hardware.policy import Policy
from flopwatch.diagnosis import Diagnosis, Host, diagnose, engine
from flopwatch.diagnosis.host import Ran

DATA = Path(__file__).parents[2] / "data" / "machines"
NAMES = sorted(path.stem for path in DATA.glob("*.toml"))


class Refusing:
    """A kernel that opens no event."""

    def __init__(self, number: int) -> None:
        self._number = number

    def open(self, attr: Attr, pid: int, cpu: int = -1) -> int:
        raise OSError(self._number, "refused")

    def close(self, descriptor: int) -> None:
        raise AssertionError("nothing was opened")


@dataclass
class Machine:
    """One of the machines, with its files below `root`."""

    name: str
    root: Path

    @cached_property
    def data(self) -> dict[str, Any]:
        """What its file says."""
        return tomllib.loads((DATA / f"{self.name}.toml").read_text())

    @cached_property
    def host(self) -> Host:
        """The machine as the diagnosis sees it."""
        for path, text in self.data.get("files", {}).items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return Host(
            root=self.root,
            env=self.data.get("env", {}),
            system=self.data["system"],
            machine=self.data["machine"],
            run=self._run,
            version=self.data.get("packages", {}).get,
            load=self._load,
            python="/usr/bin/python",
            site=("/opt/v/lib/python3.12/site-packages",),
        )

    def diagnosis(self) -> Diagnosis:
        """What the doctor says of it."""
        return diagnose(self.host, {"instrumented": self._instrumented, "hardware": self._hardware})

    def _run(self, argv: Sequence[str], seconds: float) -> Ran | None:
        for command, output in self.data.get("commands", {}).items():
            if " ".join([argv[0].rsplit("/", 1)[-1], *argv[1:]]).startswith(command):
                return Ran(0, output + "\n")
        return None

    def _load(self, library: str) -> str:
        known = self.data.get("libraries", ())
        return "" if library.removeprefix(str(self.root)) in known else f"{library}: cannot open: no such file"

    def _instrumented(self) -> Availability:
        if self.data["machine"] != "x86_64":
            module = "flopwatch.counters.instrumented"
            with patch(f"{module}.platform.machine", lambda: self.data["machine"]), patch(f"{module}.sys") as system:
                system.platform = self.data["system"]
                return engine.trial()
        reason = self.data.get("instrumented", "")
        return Availability(not reason, reason)

    def _hardware(self) -> Availability:
        seen = self.host.surroundings()
        refusal = refusals.at_sight(seen)
        if refusal is not None:
            return refusal
        answer = self.data["perf_event_open"]
        policy = Policy(
            seen,
            kernel=cast(Kernel, Refusing(getattr(errno, answer or "EIO"))),
            run=lambda loop, rounds: None,
            flags=frozenset(),
            machine=self.data["machine"],
            cached=self.root / "cache",
            find=lambda: processors.detect(self.host.read("proc/cpuinfo"), sys=self.root / "sys"),
        )
        if answer:
            return policy.judge(Needs())
        try:
            assert policy.kinds
        except Exception:
            return policy.judge(Needs())
        found = self.data.get("calibration", "")
        return Availability(not found, found)
