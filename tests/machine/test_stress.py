"""Programs that press the engine where it is most fragile run the same with and without counting, each time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from flopwatch.counters.instrumented import commands, library
from tests.machine.helpers import need_machine

pytestmark = pytest.mark.engine

SOURCES = Path(__file__).parent / "stress"
LIMIT_SECONDS = 60
TIMES = 3
PROGRAMS = {
    "spin": "4000",
    "faults": "1010 2500",
    "code": "12802200 2248500 999000",
    "children": "20 10 5 1 1",
    "throws": "55 10",
    "alternate": "1 20000 3 0 65536",
}


def build(name: str, folder: Path) -> Path:
    source = next(SOURCES.glob(f"{name}.c*"))
    compiler, *own = ("gcc",) if source.suffix == ".c" else ("g++", "-fnon-call-exceptions")
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    program = folder / name
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *own)
    subprocess.run([compiler, *flags, source, "-o", program], check=True)
    return program


@pytest.mark.parametrize("name", PROGRAMS)
def test_stays_the_same(name: str, tmp_path: Path) -> None:
    need_machine()
    if library.find() is None:
        pytest.skip("the engine has not been built")
    program = build(name, tmp_path)
    for engine in (False, *[True] * TIMES):
        with commands.folder() as place:
            env = commands.environment(place, None) if engine else None
            done = subprocess.run([program], capture_output=True, text=True, env=env, timeout=LIMIT_SECONDS)
            assert (done.stdout, done.stderr, done.returncode) == (PROGRAMS[name] + "\n", "", 0), engine
            if engine:
                images = commands.read(place)[0]
                assert all(image.complete for image in images), [image.reasons for image in images]
