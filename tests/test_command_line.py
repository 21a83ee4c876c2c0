"""The command line as a process of its own, on the fake counter: signals, terminals, streams that fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAKE = [sys.executable, "-m", "tests.fake_main"]


def start(*arguments: str, **more: object) -> subprocess.Popen[str]:
    """Start flopwatch in a process group of its own, so that a signal to the group is what a terminal's Ctrl-C is."""
    values = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([*FAKE, *arguments], cwd=ROOT, text=True, start_new_session=True, **values)  # type: ignore[call-overload,no-any-return]


def wait_for(path: Path) -> None:
    for _ in range(200):
        if path.exists():
            time.sleep(0.3)  # a shell that is just about to run its last command may lose a signal
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


def test_ctrl_c_once_shows_what_was_counted(tmp_path: Path) -> None:
    flopwatch = start("stat", "--", "sh", "-c", f"touch {tmp_path}/started; sleep 30")
    wait_for(tmp_path / "started")
    os.killpg(flopwatch.pid, signal.SIGINT)
    out, err = flopwatch.communicate(timeout=20)
    assert flopwatch.returncode == 128 + signal.SIGINT
    assert "2,000" in out
    assert "PARTIAL: Ctrl-C or a signal to end came" in out
    assert "time without" not in out
    assert "Traceback" not in err


def test_ctrl_c_twice_ends_a_program_that_does_not_listen(tmp_path: Path) -> None:
    command = f"trap '' INT; touch {tmp_path}/started; while :; do sleep 0.1; done"
    flopwatch = start("stat", "--", "sh", "-c", command)
    wait_for(tmp_path / "started")
    for _ in range(2):
        os.killpg(flopwatch.pid, signal.SIGINT)
        time.sleep(0.3)
    out, err = flopwatch.communicate(timeout=20)
    assert flopwatch.returncode == 128 + signal.SIGKILL
    assert "PARTIAL" in out
    assert "Traceback" not in err


def test_sigterm_goes_to_the_program(tmp_path: Path) -> None:
    command = f"trap 'exit 7' TERM; touch {tmp_path}/started; while :; do sleep 0.1; done"
    flopwatch = start("stat", "--", "sh", "-c", command)
    wait_for(tmp_path / "started")
    flopwatch.terminate()
    out, _ = flopwatch.communicate(timeout=20)
    assert flopwatch.returncode == 7
    assert "2,000" in out
    assert "time without" not in out  # it was told to end, and is not started again


def test_the_programs_input_is_its_own() -> None:
    flopwatch = start("stat", "--", "cat", stdin=subprocess.PIPE)
    out, _ = flopwatch.communicate("through\n", timeout=20)
    assert out.startswith("through\ncommand: cat\n")
    assert "note: not timed: the program's input is a pipe" in " ".join(out.split())


def test_a_full_disk_behind_stdout_is_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        flopwatch = start("stat", "--no-time", "--", "true", stdout=full)
        _, err = flopwatch.communicate(timeout=20)
    assert flopwatch.returncode == 4
    assert err == "flopwatch: The result could not be written: No space left on device.\n"


def test_a_reader_that_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    flopwatch = start("stat", "--no-time", "--", "true", stdout=writer)
    os.close(writer)
    _, err = flopwatch.communicate(timeout=20)
    assert err == ""
    assert flopwatch.returncode == 0


@pytest.mark.parametrize("module", ["flopwatch", "flopwatch.cli"])
def test_the_package_can_be_run_as_a_module(module: str) -> None:
    if module == "flopwatch.cli":
        code = "from flopwatch.cli import main; main(['--version'])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    else:
        done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("flopwatch, version")
