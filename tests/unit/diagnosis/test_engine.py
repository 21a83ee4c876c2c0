"""The trial of the instrumented counter: what it says of one that works, and of each way in which one does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from flopwatch.counters import Availability, CommandOptions, CommandResult, Needs, ProcessImage, instrumented
from flopwatch.diagnosis import engine, tiny
from flopwatch.errors import CannotMeasureError
from flopwatch.events import Block
from flopwatch.flops import DType, classify_block
from flopwatch.scope import Scope
from flopwatch.subjects import elf

LOOP = bytes.fromhex("660f58c0f30f59c9ffc975f4")
WORKS = Availability(True)


def image(runs: int = tiny.ROUNDS, **more: object) -> ProcessImage:
    return ProcessImage(1, blocks=(Block(Scope(), "x86_64", 0x1000, LOOP, runs),), **more)  # type: ignore[arg-type]


class Counter:
    """A counter that looks at the program and reports what a test chose."""

    name = "instrumented"

    def __init__(self, result: CommandResult | Exception, available: Availability = WORKS) -> None:
        self._result = result
        self._available = available
        self.ran: list[bytes] = []
        self.environments: list[dict[str, str]] = []

    def available(self, needs: Needs = Needs()) -> Availability:  # noqa: B008
        return self._available

    def check(self, program: elf.Program) -> None:
        raise AssertionError("not asked")

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        self.ran.append(Path(argv[0]).read_bytes())
        self.environments.append(dict(options.env or {}))
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = Needs()) -> CommandResult:  # noqa: B008
        raise AssertionError("not asked")


def trial(
    result: CommandResult | Exception, available: Availability = WORKS, selftest: Availability = WORKS
) -> Availability:
    return engine.trial(Counter(result, available), lambda: selftest, "/lib64/ld-linux-x86-64.so.2")


def test_the_loop_is_worth_what_is_expected() -> None:
    assert LOOP in tiny.CODE
    assert classify_block(image().blocks[0]).tally.flop() == tiny.EXPECTED
    assert tiny.EXPECTED == {DType.FP64: tiny.ROUNDS * 2, DType.FP32: tiny.ROUNDS}


def test_an_exact_count_passes() -> None:
    assert trial(CommandResult(0, processes=(image(),))) == Availability(True)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            CommandResult(0, processes=(image(tiny.ROUNDS - 1),)),
            "12,344 fp32 FLOP of a program that does 24,690 fp64, 12,345 fp32",
        ),
        (CommandResult(0), "counted nothing FLOP"),
        (CommandResult(0, processes=(image(complete=False, reasons=("a thread was lost",)),)), "a thread was lost"),
        (CommandResult(0, processes=(image(complete=False),)), "no reason known"),
        (
            CommandResult(0, reasons=("the loader did not load the engine",), processes=(image(),)),
            "did not load the engine",
        ),
        (CommandResult(127), "exit code 127"),
        (CommandResult(139, signal=11), "signal 11"),
        (CannotMeasureError("The counting engine has not been built."), "has not been built"),
        (OSError(28, "No space left on device"), "No space left"),
    ],
)
def test_each_failure_is_a_sentence(result: CommandResult | Exception, words: str) -> None:
    found = trial(result)
    assert not found.ok
    assert words in found.reason


def test_what_is_not_available_or_fails_its_selftest_is_not_run() -> None:
    counter = Counter(CommandResult(0), Availability(False, "not built.", "Install gcc."))
    assert engine.trial(counter, lambda: WORKS, "/loader") == Availability(False, "not built.", "Install gcc.")
    assert trial(CommandResult(0), selftest=Availability(False, "flags are lost.")) == Availability(
        False, "flags are lost."
    )
    assert counter.ran == []


def test_other_preloaded_libraries_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/nowhere/libother.so")
    counter = Counter(CommandResult(0, processes=(image(),)))
    assert engine.trial(counter, lambda: WORKS, "/loader").ok
    assert "LD_PRELOAD" not in counter.environments[0]
    assert b"/loader\0" in counter.ran[0]


def test_a_folder_without_execution_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = trial(CommandResult(0))
    assert "may not be executed" in found.reason and tempfile.gettempdir() in found.reason
    assert "TMPDIR=" in found.todo


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the program is x86-64 Linux code"
)
def test_the_program_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(tiny.program(elf.inspect(sys.executable).loader))
    path.chmod(0o700)
    assert subprocess.run([path]).returncode == 0
    found = elf.inspect(str(path))
    assert (found.bits, found.machine) == (64, elf.X86_64)
    assert found.loader


@pytest.mark.engine
def test_the_real_engine_passes() -> None:
    if not instrumented.COUNTER.available().ok:
        pytest.skip(instrumented.COUNTER.available().reason)
    assert engine.trial() == Availability(True)


def test_another_architecture_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrumented.platform, "machine", lambda: "aarch64")
    found = engine.trial()
    assert "translates x86-64 code" in found.reason and "aarch64" in found.reason
