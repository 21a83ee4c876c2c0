"""Real programs give the same output to the last bit, the same stderr and the same exit code, counted or not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.machine import helpers

pytestmark = pytest.mark.engine

LARGE = ("torch", "jax", "sklearn", "scipy", "onnx")
PROGRAMS = sorted(path for path in helpers.PROGRAMS.glob("*.py") if path.stem not in ("show", "__init__"))
PARAMETERS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem.startswith(LARGE) else [])
    for path in PROGRAMS
]
MAY_BE_PARTIAL = {
    "ctypes_callbacks": "find_library runs ldconfig, which is a static program",
    "ends_by_abort": "it dies by a signal",
    "ends_by_interrupt": "it dies by a signal",
    "ends_by_signal": "it dies by a signal",
    "faulthandler_crash": "a child dies by a signal",
    "pool_fork": "the pool ends its workers by a signal, unless they have ended before",
    "pool_spawn": "as above",
    "subprocess_tree": "a child dies by a signal",
}
QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


def needs(program: Path) -> list[str]:
    """The modules on a program's `# needs:` line."""
    found = re.search(r"^# needs:(.*)$", program.read_text(), re.MULTILINE)
    assert found, f"{program.name} has no `# needs:` line"
    return found[1].split()


@pytest.mark.parametrize("program", PARAMETERS)
def test_gives_the_same(program: Path) -> None:
    helpers.need_machine()
    command = [helpers.need_python(*needs(program)), str(program)]
    native = helpers.run(command, env=QUIET)
    counted = helpers.count(command, env=QUIET, limit=1800)
    if counted.run != native:
        assert helpers.run(command, env=QUIET) == native, "not deterministic even without counting"
    helpers.assert_same(native, counted.run)
    assert counted.record["exit_code"] == native.code
    assert counted.record["unknown"] == []
    if program.stem not in MAY_BE_PARTIAL:
        assert counted.record["complete"], counted.record["partial"]
    if program.stem.startswith(("numpy", *LARGE)):
        assert counted.flop(), "such a program does floating-point work"


@pytest.mark.parametrize("option", ["-c", "-m", "-", "directory", "-i"])
def test_python_started_otherwise(option: str, tmp_path: Path) -> None:
    """A program on the command line, as a module, from stdin, as a folder with __main__.py, and interactively."""
    helpers.need_machine()
    python = helpers.need_python()
    text = "import sys\nprint(sys.argv, __name__, sum(i ** 0.5 for i in range(1000)))\nsys.exit(6)\n"
    (tmp_path / "module_here.py").write_text(text)
    (tmp_path / "__main__.py").write_text(text)
    command = {
        "-c": [python, "-c", text, "argument"],
        "-m": [python, "-m", "module_here", "argument"],
        "-": [python, "-", "argument"],
        "directory": [python, str(tmp_path), "argument"],
        "-i": [python, "-i", "-q"],
    }[option]
    stdin = text.encode() if option in ("-", "-i") else b""
    env = QUIET | {"PYTHONPATH": os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))}
    native = helpers.run(command, stdin=stdin, env=env)
    assert native.code == 6
    helpers.assert_same(native, helpers.count(command, stdin=stdin, env=env).run)
