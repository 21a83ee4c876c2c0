from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from flopwatch.errors import UsageError
from flopwatch.subjects import process


def later(seconds: float, number: int, times: int = 1) -> threading.Thread:
    """Send ourselves a signal in a while, as a terminal or a batch system would."""

    def send() -> None:
        for _ in range(times):
            time.sleep(seconds)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_exit_codes_and_signals() -> None:
    assert process.run(["sh", "-c", "exit 7"]).exit_code == 7
    killed = process.run(["sh", "-c", "kill -SEGV $$"])
    assert (killed.exit_code, killed.signal) == (128 + signal.SIGSEGV, signal.SIGSEGV)
    assert not killed.interrupted


def test_the_environment_and_the_streams_are_those_given(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process.run(["/bin/sh", "-c", "cat; echo $WHO"], {"WHO": "me"}, stdin=subprocess.DEVNULL, stdout=out)
    assert (tmp_path / "out").read_text() == "me\n"


def test_sigterm_is_forwarded() -> None:
    thread = later(0.3, signal.SIGTERM)
    ended = process.run(["sleep", "20"])
    thread.join()
    assert (ended.exit_code, ended.signal) == (128 + signal.SIGTERM, signal.SIGTERM)
    assert ended.interrupted


def test_the_first_interrupt_is_left_to_the_program() -> None:
    thread = later(0.3, signal.SIGINT)  # to us only, so the program goes on
    ended = process.run(["sh", "-c", "sleep 0.8; exit 5"])
    thread.join()
    assert (ended.exit_code, ended.signal, ended.interrupted) == (5, 0, True)


def test_the_second_interrupt_ends_it() -> None:
    thread = later(0.3, signal.SIGINT, times=2)
    ended = process.run(["sleep", "20"])
    thread.join()
    assert (ended.signal, ended.interrupted) == (signal.SIGKILL, True)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    process.run(["true"])
    with pytest.raises(UsageError):
        process.run(["/no/such/program"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert process.run(["sh", "-c", "kill -HUP $$; exit 3"]).exit_code == 3
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was not found"):
        process.run([str(tmp_path / "none")])
    with pytest.raises(UsageError, match="may not be executed"):
        process.run([str(tmp_path)])
