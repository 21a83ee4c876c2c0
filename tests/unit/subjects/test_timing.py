from __future__ import annotations

import os
from pathlib import Path

from flopwatch.subjects.timing import Input, time_command

OK = (0, 0)


def test_the_output_is_thrown_away_and_the_environment_given(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["sh", "-c", f"echo loud; echo louder >&2; echo run >> {out}"]
    timed = time_command(command, None, Input(os.open(os.devnull, os.O_RDONLY)), runs=3, expected=OK)
    assert len(timed.seconds) == 3
    assert all(seconds > 0 for seconds in timed.seconds)
    assert out.read_text() == "run\n" * 3


def test_a_program_that_ends_differently_has_no_time() -> None:
    timed = time_command(["false"], None, Input(os.open(os.devnull, os.O_RDONLY)), runs=1, expected=OK)
    assert timed.seconds == ()
    assert "ended differently (exit code 1)" in timed.note


def test_a_file_is_read_again_from_where_it_stood(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("skipped\nread\n")
    descriptor = os.open(tmp_path / "in", os.O_RDONLY)
    os.lseek(descriptor, len("skipped\n"), os.SEEK_SET)
    given = Input(descriptor)
    os.read(descriptor, 100)  # the counted run
    command = ["sh", "-c", f"cat > {tmp_path}/out"]
    assert len(time_command(command, None, given, runs=1, expected=OK).seconds) == 1
    assert (tmp_path / "out").read_text() == "read\n"
    assert given.rewind()
    assert os.read(descriptor, 100) == b"read\n"


def test_a_pipe_that_was_read_cannot_be_read_again() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"data")
    given = Input(reader)
    os.read(reader, 4)
    assert not given.repeatable()
    assert time_command(["true"], None, given, runs=1, expected=OK).note.startswith("not timed: the program's input")


def test_data_that_comes_during_the_first_run_is_noticed() -> None:
    reader, writer = os.pipe()
    given = Input(reader)
    os.write(writer, b"data")
    os.close(writer)
    assert not given.repeatable()


def test_a_pipe_that_gives_nothing_does_no_harm() -> None:
    reader, _writer = os.pipe()
    given = Input(reader)
    assert given.repeatable()
    closed_reader, closed_writer = os.pipe()
    os.close(closed_writer)
    assert Input(closed_reader).repeatable()
