from __future__ import annotations

import subprocess
import sys

import pytest

from flopwatch.counters import CommandResult, ProcessImage, Thread
from flopwatch.errors import UsageError
from flopwatch.measuring import measure_command, measure_process, process_names, signal_name
from flopwatch.record import Record
from tests.fakes import MASKED_FMA, FakeCounter, block, image

FLOP = 2  # of one run of the block mulss, addss


def result(runs: int, *reasons: str) -> CommandResult:
    return CommandResult(0, processes=(image(block(runs=runs), complete=not reasons, reasons=reasons),))


def using(monkeypatch: pytest.MonkeyPatch, *results: CommandResult) -> FakeCounter:
    counter = FakeCounter(*results)
    monkeypatch.setattr("flopwatch.counters.find", lambda name="auto", needs=None: counter)
    return counter


def total(record: Record) -> int:
    return sum(record.flop().values())


def test_a_command(fake: FakeCounter) -> None:
    record = measure_command(["true"])
    assert total(record) == 1000 * FLOP
    assert record.complete
    assert record.command == ("true",)
    assert record.counter == "fake"
    assert record.seconds == record.timed_seconds[0] > 0
    assert record.machine["architecture"] == "x86_64"
    assert "python" in record.versions


def test_the_command_runs_once_without_time_and_twice_with(fake: FakeCounter, tmp_path: object) -> None:
    command = ["sh", "-c", f"echo run >> {tmp_path}/log"]
    measure_command(command, timed=False)
    with open(f"{tmp_path}/log") as log:
        assert log.read() == "run\n"
    measure_command(command)
    with open(f"{tmp_path}/log") as log:
        assert log.read() == "run\n" * 3


def test_repeats_show_the_middle_run(monkeypatch: pytest.MonkeyPatch) -> None:
    using(monkeypatch, result(10), result(30), result(20))
    record = measure_command(["true"], repeat=3)
    assert total(record) == 20 * FLOP
    assert [run.flop for run in record.repeats] == [{"fp32": runs * FLOP} for runs in (10, 30, 20)]
    assert len(record.timed_seconds) == 3


def test_a_program_whose_input_is_used_up_is_not_repeated(fake: FakeCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flopwatch.measuring.Input.rewind", lambda self: False)
    record = measure_command(["true"], repeat=3, timed=False)
    assert fake.commands == [("true",)]
    assert record.repeats == ()
    assert record.notes == ("run once only: the program's input is a pipe, which cannot be read a second time",)


def test_a_partial_repeat_makes_the_record_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    using(monkeypatch, result(10), result(30, "a thread was lost"), result(20))
    record = measure_command(["true"], repeat=3, timed=False)
    assert not record.complete
    assert record.partial == ("process 1 axpy: a thread was lost",)
    assert [run.complete for run in record.repeats] == [True, False, True]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = image(block(), block(thread=2), threads=(Thread(1), Thread(2, "pool", complete=False)), complete=False)
    using(monkeypatch, CommandResult(0, processes=(lost, image(pid=2, complete=False)), hidden=("amx",)))
    record = measure_command(["true"], timed=False)
    assert record.partial == (
        "process 1 axpy: not counted to its end",
        "process 1 axpy: 1 of 2 threads not counted to their end",
        "process 2 axpy: not counted to its end",
    )
    assert record.hidden == ("amx",)


def test_a_program_ended_by_a_signal_is_partial(fake: FakeCounter) -> None:
    record = measure_command(["sh", "-c", "kill -SEGV $$"])
    assert (record.exit_code, record.signal) == (128 + 11, 11)
    assert record.partial == ("the program was ended by SIGSEGV; it was counted until then",)
    assert record.notes == ("not timed: the program was ended by SIGSEGV",)
    assert record.seconds is None


def test_a_program_without_time_says_why(fake: FakeCounter, tmp_path: object) -> None:
    once = f"test ! -e {tmp_path}/done && touch {tmp_path}/done"
    record = measure_command(["sh", "-c", once])
    assert record.seconds is None
    assert record.notes == ("not timed: run a second time, the program ended differently (exit code 1)",)


def test_unknown_instructions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = (block(bytes.fromhex("0606"), 3), block(MASKED_FMA, 7))
    using(monkeypatch, CommandResult(0, processes=(image(*blocks),)))
    record = measure_command(["true"], timed=False)
    assert [each.count for each in record.unknown] == [3]
    assert record.coverage == 1 - 3 / (3 + 7)


def test_wrong_use(fake: FakeCounter) -> None:
    with pytest.raises(UsageError, match="There is no command to measure"):
        measure_command([])
    with pytest.raises(UsageError, match="cannot be repeated 0 times"):
        measure_command(["true"], repeat=0)
    with pytest.raises(UsageError, match="was not found"):
        measure_command(["no-such-command"])
    assert fake.commands == []


def test_the_path_of_the_given_environment_counts(fake: FakeCounter) -> None:
    with pytest.raises(UsageError, match="was not found"):
        measure_command(["true"], env={"PATH": "/nowhere"})


def test_a_running_process(fake: FakeCounter) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        record = measure_process(child.pid, during=["true"])
        assert child.poll() is None
        child.kill()
    assert record.subject == "process"
    assert record.command[0] == sys.executable
    assert fake.attached == [child.pid]
    assert total(record) == 1000 * FLOP
    assert record.complete


def test_names_of_processes_are_unique() -> None:
    images = [ProcessImage(7, argv=argv) for argv in (("/bin/sh",), ("axpy", "1"), ("sh",), ("sh",), ())]
    assert process_names(images) == ["7 sh", "7 axpy", "7 sh #2", "7 sh #3", "7 ?"]


def test_names_of_signals() -> None:
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(99) == "signal 99"
