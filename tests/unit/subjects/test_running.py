from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.subjects import running


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        yield child
        child.kill()


def test_a_process_of_ours_can_be_looked_into(sleeper: subprocess.Popen[bytes]) -> None:
    program = running.inspect(sleeper.pid)
    assert program.bits == 64
    assert Path(program.path).name.startswith("python")


def test_processes_that_are_not_there() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(UsageError, match="has ended already"):
            running.inspect(child.pid)
    with pytest.raises(UsageError, match="There is no process"):
        running.inspect(child.pid)
    with pytest.raises(UsageError, match="is flopwatch itself"):
        running.inspect(os.getpid())


def test_a_process_of_another_user(monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(CannotMeasureError, match="belongs to another user"):
        running.inspect(sleeper.pid)


@pytest.mark.parametrize(("scope", "todo"), [("1", "or use sudo"), ("3", "under flopwatch instead.")])
def test_ptrace_forbidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sleeper: subprocess.Popen[bytes], scope: str, todo: str
) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(running, "PTRACE_SCOPE", tmp_path / "scope")
    owner = Path(f"/proc/{sleeper.pid}").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner or 1)
    if owner == 0:
        monkeypatch.setattr(Path, "stat", lambda self, **more: type("Status", (), {"st_uid": 1})())
    with pytest.raises(CannotMeasureError, match="forbidden here") as caught:
        running.inspect(sleeper.pid)
    assert todo in caught.value.todo


def test_waiting_ends_with_the_process() -> None:
    with subprocess.Popen(["sleep", "0.2"]) as child:
        assert running.wait_for_end(child.pid) is False
    assert running.wait_for_end(child.pid) is False  # it is gone


def test_waiting_ends_with_ctrl_c(sleeper: subprocess.Popen[bytes]) -> None:
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert running.wait_for_end(sleeper.pid) is True
    assert signal.getsignal(signal.SIGINT) is before
    assert sleeper.poll() is None
