"""`stat` and `show` in this process, on the fake counter; tests/test_command_line.py runs them as processes."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from flopwatch import cli
from flopwatch.counters import CommandResult
from tests.fakes import MASKED_FMA, FakeCounter, block, image

FLOP = 2 * 1000


def test_the_programs_output_comes_first_then_the_result(fake: FakeCounter, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "--", "sh", "-c", "echo mine; echo other >&2"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("mine\ncommand: sh -c 'echo mine; echo other >&2'\n")
    assert err == "other\n"
    for part in ("fp32", f"{FLOP:,}", "mul", "add", "convention: pmu", "coverage: 100.00 %", "time without"):
        assert part in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_the_programs_exit_code_passes_through(fake: FakeCounter) -> None:
    assert cli.run(["stat", "--no-time", "--", "sh", "-c", "exit 9"]) == 9
    assert cli.run(["stat", "--no-time", "sh", "-c", "kill -TERM $$"]) == 128 + 15


def test_json(fake: FakeCounter, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "--json", "--by", "thread", "--", "true"]) == 0
    found = json.loads(capfd.readouterr().out)
    wanted = [
        "schema",
        "counter",
        "complete",
        "flop",
        "op",
        "operations",
        "unknown",
        "coverage",
        "exit_code",
        "seconds",
    ]
    wanted += ["rows", "partial", "hidden", "processes", "convention", "machine", "command", "versions"]
    assert not set(wanted) - set(found)
    assert found["flop"] == {"fp32": FLOP}
    assert found["rows"][0]["flop"] == {"fp32": FLOP}


def test_separated_values(fake: FakeCounter, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "-x", ";", "--no-time", "--", "true"]) == 0
    rows = list(csv.reader(io.StringIO(capfd.readouterr().out), delimiter=";"))
    assert rows[0] == ["quantity", "value", "unit"]
    assert ["flop.fp32", str(FLOP), "FLOP"] in rows
    assert ["seconds", "", "s"] in rows
    assert cli.run(["stat", "-x,", "--by", "instruction", "--no-time", "--", "true"]) == 0
    assert "mulss xmm,1000,0.5,fp32\n" in capfd.readouterr().out


@pytest.mark.parametrize("axis", ["process", "thread", "library", "symbol", "instruction"])
def test_every_axis(fake: FakeCounter, capfd: pytest.CaptureFixture[str], axis: str) -> None:
    assert cli.run(["stat", "--no-time", "--by", axis, "--", "true"]) == 0
    assert f"by {axis}" in capfd.readouterr().out


def test_a_saved_record_makes_every_report_again(
    fake: FakeCounter, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "record.json")
    assert cli.run(["stat", "--by", "symbol", "-o", path, "--", "true"]) == 0
    assert capfd.readouterr().out == ""
    assert cli.run(["show", path, "--by", "symbol"]) == 0
    text = capfd.readouterr().out
    assert f"{FLOP:,}" in text and "by symbol" in text
    assert cli.run(["show", path, "--json", "--by", "symbol"]) == 0
    assert json.loads(capfd.readouterr().out) == json.loads(Path(path).read_text())
    assert cli.run(["show", path, "--markdown"]) == 0
    assert "| fp32 | 2,000 | 100 % |" in capfd.readouterr().out


def test_a_result_in_a_file_is_text_unless_its_name_ends_in_json(fake: FakeCounter, tmp_path: Path) -> None:
    assert cli.run(["stat", "-o", str(tmp_path / "result.txt"), "--", "true"]) == 0
    assert (tmp_path / "result.txt").read_text().startswith("command: true\n")


def test_conventions_and_lanes(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    runs, on = 10, 35
    counter = FakeCounter(CommandResult(0, processes=(image(block(MASKED_FMA, runs, active=((0, on),))),)))
    monkeypatch.setattr("flopwatch.counters.find", lambda name="auto", needs=None: counter)
    wanted = {(): 2 * 16 * runs, ("--lanes", "active"): 2 * on, ("--convention", "arithmetic"): 2 * on}
    for options, flop in wanted.items():
        assert cli.run(["stat", "--no-time", "--json", *options, "--", "true"]) == 0
        assert json.loads(capfd.readouterr().out)["flop"] == {"fp32": flop}


def test_strict(monkeypatch: pytest.MonkeyPatch, fake: FakeCounter, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "--no-time", "--strict", "--", "true"]) == 0
    for processes, reason in (
        ((image(block(bytes.fromhex("0606"))),), "unknown: 1 kinds"),
        ((image(block(), complete=False, reasons=("a thread was lost",)),), "process 1 axpy: a thread was lost"),
    ):
        counter = FakeCounter(CommandResult(0, processes=processes))
        monkeypatch.setattr("flopwatch.counters.find", lambda name="auto", needs=None, counter=counter: counter)
        assert cli.run(["stat", "--no-time", "--", "true"]) == 0
        capfd.readouterr()
        assert cli.run(["stat", "--no-time", "--strict", "--", "true"]) == 3
        out, err = capfd.readouterr()
        assert "coverage" in out
        assert err.startswith("flopwatch: The record is not complete, and --strict was asked for.")
        assert reason in err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["stat"], 2, "There is no command to measure. Write it after two dashes: flopwatch stat -- COMMAND."),
        (["stat", "--"], 2, "There is no command to measure."),
        (["stat", "--", "no-such-command"], 2, "The command 'no-such-command' was not found"),
        (["stat", "--", "./no-such-file"], 2, "There is no file './no-such-file'."),
        (["stat", "-o", "/no/such/folder/x", "--", "true"], 2, "The folder '/no/such/folder' for the result does not"),
        (["stat", "-o", "/tmp", "--", "true"], 2, "'/tmp' is a folder"),
        (["stat", "-x", "", "--", "true"], 2, "The separator after -x is empty."),
        (["stat", "-x,", "--json", "--", "true"], 2, "only one can be asked for"),
        (["stat", "-r", "0", "--", "true"], 2, "0 is not in the range"),
        (["stat", "-r", "2", "-p", "1"], 2, "A running process cannot be repeated."),
        (["stat", "-p", "4194305"], 2, "There is no process 4194305."),
        (["stat", "-p", str(os.getpid())], 2, "is flopwatch itself"),
        (["stat", "--counter", "sundial", "--", "true"], 2, "'sundial' is not"),
        (["stat", "--by", "colour", "--", "true"], 2, "'colour' is not"),
        (["show", "/no/such/record.json"], 2, "'/no/such/record.json' cannot be read: No such file or directory."),
        (["show", "/dev/null"], 2, "'/dev/null' is not a flopwatch record."),
        (["no-such-command"], 2, "No such command 'no-such-command'"),
    ],
)
def test_bad_input_is_a_sentence_and_an_exit_code(
    fake: FakeCounter, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert cli.run(arguments) == code
    out, err = capfd.readouterr()
    assert sentence in err
    assert "Traceback" not in err
    assert out == ""
    assert fake.commands == []


def test_a_full_disk_is_found_and_the_result_is_printed(fake: FakeCounter, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "--no-time", "-o", "/dev/full", "--", "true"]) == 4
    out, err = capfd.readouterr()
    assert f"{FLOP:,}" in out
    assert "could not be written to '/dev/full': No space left on device. It was printed instead." in err


def test_help_and_version(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["stat", "--help"], ["show", "-h"], ["--version"]):
        assert cli.run(arguments) == 0
    assert "The command RUNS TWICE" in " ".join(capfd.readouterr().out.split())


def test_events_that_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", "-e", "page-faults=2", "-e", "task-clock", "--no-time", "--json", "--", "true"]) in (0, 4)
    out, err = capfd.readouterr()
    if "does not work here" in err:
        pytest.skip(f"perf_event_open does not work here: {err}")
    found = json.loads(out)
    faults, clock = found["events"]
    assert (faults["name"], faults["code"], faults["weight"]) == ("page-faults", "", 2)
    assert clock["weight"] is None
    assert found["flop"] == {"any": 2 * faults["count"]}
    assert (found["counter"], found["convention"], found["coverage"]) == ("hardware", "pmu", None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-e", "cycles"], "There is no event 'cycles'"),
        (["-e", "r02c7", "--counter", "instrumented"], "has no events"),
    ],
)
def test_events_that_make_no_sense(options: list[str], sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["stat", *options, "--", "true"]) == 2
    assert sentence in capfd.readouterr().err


def test_hardware_where_there_is_none_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    code = cli.run(["stat", "--counter", "hardware", "--by", "symbol", "--", "true"])
    err = capfd.readouterr().err
    assert code == 4
    assert "The hardware counter does not work here." in err
    assert "--counter instrumented" in err
