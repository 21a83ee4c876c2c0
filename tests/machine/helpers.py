"""Build the targets, run programs with and without counting, and lay the results side by side."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.targets import expected

TESTS = Path(__file__).parent.parent
TARGETS = TESTS / "targets"
PROGRAMS = TESTS / "programs"
LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Run:
    """What a program left behind: exit code as a shell shows it (128 + signal), stdout, stderr."""

    code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Counted:
    """A run under `flopwatch stat`, and its JSON record."""

    run: Run
    record: dict[str, Any]

    def operations(self) -> dict[expected.Key, int]:
        """Executed instructions by (operation, datatype, lanes, masked)."""
        return {_key(each): each["count"] for each in self.record["operations"] if each["count"]}

    def active(self) -> dict[expected.Key, int | None]:
        """Switched-on lanes of the masked instructions, by kind."""
        return {_key(each): each["active_lanes"] for each in self.record["operations"] if each["masked"]}

    def flop(self) -> dict[str, int]:
        """FLOP by datatype, without zeros."""
        return {dtype: count for dtype, count in self.record["flop"].items() if count}


def _key(each: Mapping[str, Any]) -> expected.Key:
    return (each["operation"], each["dtype"], each["lanes"], each["masked"])


@functools.cache
def processor_flags() -> frozenset[str]:
    """The instruction sets that this processor has, under the kernel's names."""
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def need_machine(*flags: str) -> None:
    """Skip the test where this machine cannot run it, with the reason."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        pytest.skip("needs Linux on x86-64")
    if missing := set(flags) - processor_flags():
        pytest.skip(f"this processor lacks {', '.join(sorted(missing))}")


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="flopwatch-targets-"))


def remove_built() -> None:
    """Remove what `build` and `build_stepper` made in this session."""
    shutil.rmtree(_folder(), ignore_errors=True)
    _folder.cache_clear()
    build.cache_clear()
    build_stepper.cache_clear()


def source(name: str) -> Path:
    """The source file of a target."""
    return next(path for path in (TARGETS / f"{name}.c", TARGETS / f"{name}.cpp") if path.exists())


@functools.cache
def build(name: str, way: expected.Build) -> Path:
    """Compile a target one way, once a session; returns the program's path. Skips the test without a compiler."""
    case = expected.CASES[name]
    program = _folder() / way.name / name
    program.parent.mkdir(exist_ok=True)
    flags = ("-Wall", "-Wextra", "-Werror", *way.flags, *case.flags)
    if "plugin.c" in case.sources:
        library = program.with_name(f"{name}.plugin.so")
        _compile(TARGETS / "plugin.c", library, (*flags, "-shared", "-fPIC"))
    _compile(source(name), program, flags)
    return program


@functools.cache
def build_stepper() -> Path:
    """Compile the single-stepping witness; returns its path."""
    program = _folder() / "stepper"
    _compile(Path(__file__).with_name("stepper.c"), program, ("-Wall", "-Wextra", "-Werror"))
    return program


def _compile(code: Path, result: Path, flags: Sequence[str]) -> None:
    compiler, standard = ("g++", "-std=gnu++17") if code.suffix == ".cpp" else ("gcc", "-std=gnu11")
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    link = ("-pthread", "-ldl", "-rdynamic")
    command = (compiler, standard, "-O2", "-ffp-contract=off", *flags, str(code), "-o", str(result), *link)
    subprocess.run(command, check=True)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, in a plain locale and with a fixed string hash, so that outputs can be compared."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTEST_CURRENT_TEST", "LD_PRELOAD")}
    return kept | {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"} | dict(extra or {})


def run(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT_SECONDS,
) -> Run:
    """Run a command in an empty folder of one and the same name; raises subprocess.TimeoutExpired after `limit` seconds."""
    folder = _folder() / "here"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    variables = environment(env) | {"PWD": str(folder)}
    done = subprocess.run(list(command), input=stdin, capture_output=True, env=variables, cwd=folder, timeout=limit)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Run(code, done.stdout, done.stderr)


def count(
    command: Sequence[str],
    *options: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT_SECONDS,
) -> Counted:
    """Run a command under `flopwatch stat`, as a user would; `options` come before the command."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        done = run((*stat("--json", "-o", str(file), *options), "--", *command), stdin=stdin, env=env, limit=limit)
        assert file.exists(), f"stat wrote no record; code {done.code}, stderr: {done.stderr.decode(errors='replace')}"
        return Counted(done, json.loads(file.read_text()))


def stat(*options: str) -> tuple[str, ...]:
    """The start of a command line that counts once and takes no time."""
    return (sys.executable, "-m", "flopwatch", "stat", "--no-time", *options)


@functools.cache
def python_with(*modules: str) -> str:
    """A Python that can import the modules: this one, or what FLOPWATCH_TORCH_PYTHON or FLOPWATCH_SCI_PYTHON name."""
    variables = ("FLOPWATCH_TORCH_PYTHON", "FLOPWATCH_SCI_PYTHON")
    tried = [os.environ[name] for name in variables if os.environ.get(name)]
    # -P and find_spec: nothing is imported, so that asking is quick
    question = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    for python in (*tried, sys.executable):
        if subprocess.run((python, "-P", "-c", question), capture_output=True).returncode == 0:
            return python
    return ""


def need_python(*modules: str) -> str:
    """The Python of `python_with`; skips the test where there is none, saying what is missing."""
    python = python_with(*modules)
    if not python:
        pytest.skip(
            f"no Python with {', '.join(modules)}: install it here, or name one in FLOPWATCH_TORCH_PYTHON "
            "or FLOPWATCH_SCI_PYTHON"
        )
    return python


def digest(data: bytes) -> str:
    """A short name for bytes, for messages."""
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}"


def assert_same(native: Run, counted: Run) -> None:
    """Counting changed nothing that can be seen: exit code, stdout and stderr."""
    assert counted.stdout == native.stdout
    assert counted.stderr == native.stderr
    assert counted.code == native.code
