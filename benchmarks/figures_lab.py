"""How figures.py runs things: flopwatch on the programs beside it, and what it reads off their records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flopwatch

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = str(Path(flopwatch.__file__).parent.parent)

Record = dict[str, Any]


@dataclass(frozen=True)
class Lab:
    """Runs flopwatch on the programs beside this file, and keeps the processor's instruction sets."""

    python: str
    folder: Path
    flags: frozenset[str]

    def stat(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Record:
        """One run of a program under `flopwatch stat`, its record with rows by instruction."""
        file = self.folder / "record.json"
        options = (
            "--counter",
            "instrumented",
            "--no-time",
            "--by",
            "instruction",
            "--strict",
            "--json",
            "-o",
            str(file),
        )
        program = str(PROGRAMS / program)
        command = (sys.executable, "-m", "flopwatch", "stat", *options, "--", self.python, program, *arguments)
        return self._record(command, file, env)

    def model(self, name: str, *options: str, env: Mapping[str, str] | None = None) -> Record:
        """One counted step under `flopwatch model`, its record with rows by layer."""
        file = self.folder / "record.json"
        measured = ("--measure", "--strict", "--json", "-o", str(file), *options)
        return self._record((self.python, "-m", "flopwatch", "model", name, *measured), file, env)

    def layer(self, factory: str, *options: str, env: Mapping[str, str] | None = None) -> Record:
        """The same of a factory in torch_layers.py."""
        return self.model(f"{PROGRAMS / 'torch_layers.py'}:{factory}", *options, env=env)

    def output(self, program: str, *arguments: str) -> str:
        """What a program that counts itself prints."""
        return self._run((self.python, str(PROGRAMS / program), *arguments)).stdout

    def _record(self, command: tuple[str, ...], file: Path, env: Mapping[str, str] | None) -> Record:
        self._run(command, env)
        record: Record = json.loads(file.read_text())
        assert sum(
            sum(row["flop"].values()) if record["subject"] != "model" else row["measured_flop"]
            for row in record["rows"]
        ) == sum(record["flop"].values()), "rows do not sum to the total"
        return record

    def _run(self, command: tuple[str, ...], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH"))))
        variables = os.environ | {"PYTHONPATH": path} | dict(env or {})
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done


def flop(record: Record, dtype: str = "fp32") -> int:
    """FLOP of one datatype."""
    return int(record["flop"].get(dtype, 0))


def lanes(record: Record, operation: str, dtype: str) -> int:
    """Executed lanes of one operation in one datatype."""
    found = (each for each in record["operations"] if (each["operation"], each["dtype"]) == (operation, dtype))
    return sum(each["count"] * each["lanes"] for each in found)


def by_instruction(record: Record) -> dict[str, int]:
    """FLOP by instruction, most first."""
    rows = {row["name"]: sum(row["flop"].values()) for row in record["rows"]}
    return dict(sorted(rows.items(), key=lambda item: -item[1]))


def threads(number: int) -> dict[str, str]:
    """The environment that gives every BLAS and OpenMP so many threads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    return dict.fromkeys(names, str(number))
