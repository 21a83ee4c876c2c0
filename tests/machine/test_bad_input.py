"""Whatever is wrong is a sentence and an exit code, on the real engine; nothing is left behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import helpers
from tests.machine.terminal import Terminal
from tests.targets.expected import BUILDS

pytestmark = pytest.mark.engine

FLOPWATCH = [sys.executable, "-m", "flopwatch"]
NOBODY = 65534


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No folder of counts outlives the command that made it."""

    def folders() -> set[Path]:
        return {
            path for place in ("/dev/shm", tempfile.gettempdir()) for path in Path(place).glob("flopwatch-????????")
        }

    before = folders()
    yield
    assert not {path for path in folders() - before if not _is_anothers(path)}


def _is_anothers(path: Path) -> bool:
    """Tests that run beside these have folders of their own, for a while."""
    for _ in range(100):
        if not path.exists():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def program() -> str:
    return str(helpers.build("axpy", BUILDS[0]))


def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FLOPWATCH, *arguments], capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload,no-any-return]


def refused(code: int, part: str, *arguments: str, **more: object) -> None:
    done = run(*arguments, **more)
    assert done.returncode == code, done.stderr
    assert part in done.stderr
    assert done.stderr.startswith("flopwatch: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def elf(path: Path, *, bits: int, machine: int) -> str:
    """A program that is nothing but its header."""
    size = 64 if bits == 64 else 52
    head = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9) + struct.pack("<HH", 2, machine)
    path.write_bytes(head + bytes(size - len(head)))
    path.chmod(0o755)
    return str(path)


def test_no_command() -> None:
    refused(2, "no command to measure", "stat")


@pytest.mark.parametrize("name", ["no-such-command", "./no-such-file"])
def test_command_not_found(name: str) -> None:
    refused(2, name, "stat", "--", name)


def test_not_executable(tmp_path: Path, program: str) -> None:
    copy = Path(shutil.copy(program, tmp_path / "copy"))
    copy.chmod(0o644)
    refused(2, "is not executable. Run `chmod +x", "stat", "--", str(copy))


def test_foreign_programs(tmp_path: Path) -> None:
    refused(4, "built for x86 (32 bit)", "stat", "--", elf(tmp_path / "old", bits=32, machine=3))
    refused(4, "built for AArch64 (64 bit)", "stat", "--", elf(tmp_path / "arm", bits=64, machine=183))


def test_static_program(tmp_path: Path) -> None:
    refused(4, "statically linked", "stat", "--", static(tmp_path))


def static(folder: Path) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    source, made = folder / "static.c", folder / "static"
    source.write_text("int main(void) { return 7; }\n")
    if subprocess.run(["gcc", "-static", "-o", made, source], capture_output=True).returncode:
        pytest.skip("needs a static libc")
    return str(made)


@pytest.mark.parametrize("how", ["{0}; true", "{0} & wait", "exec {0}"], ids=["vfork", "fork", "exec"])
def test_a_static_program_in_the_tree_makes_the_record_partial(tmp_path: Path, how: str) -> None:
    record = helpers.count(["sh", "-c", how.format(static(tmp_path))]).record
    assert not record["complete"]
    assert any(f"{tmp_path}/static, which it became"[-30:] in reason for reason in record["partial"])


def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
    """flopwatch under an account without rights; the modules must be readable for it."""
    if os.geteuid() != 0 or not os.access("/usr/bin/setpriv", os.X_OK):
        pytest.skip("needs root and setpriv, to become somebody else")
    account = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*account, *FLOPWATCH, "--version"], capture_output=True).returncode:
        pytest.skip("another account cannot read this Python")
    return subprocess.run([*account, *FLOPWATCH, *arguments], capture_output=True, text=True, timeout=120)


def test_setuid_program(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to other accounts
        os.chmod(folder, 0o755)
        copy = Path(shutil.copy(program, folder))
        copy.chmod(0o4755)
        done = as_nobody("stat", "--", str(copy))
    assert done.returncode == 4
    assert "setuid program" in done.stderr


def test_a_process_that_is_gone_and_one_that_is_not_ours() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    refused(2, f"There is no process {child.pid}", "stat", "-p", str(child.pid))
    done = as_nobody("stat", "-p", str(os.getpid()), "--", "true")
    assert done.returncode == 4
    assert "belongs to another user" in done.stderr


def test_a_folder_that_does_not_exist_or_cannot_be_looked_into(tmp_path: Path, program: str) -> None:
    refused(2, "does not exist. Run `mkdir -p", "stat", "-o", str(tmp_path / "no" / "x.json"), "--", program)
    refused(2, "is empty", "stat", "-o", "", "--", program)
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    done = as_nobody("stat", "-o", str(closed / "x.json"), "--", "true")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_full_disk_keeps_the_result(program: str) -> None:
    done = run("stat", "--no-time", "-o", "/dev/full", "--", program)
    assert done.returncode == 4
    assert done.stderr.endswith("No space left on device. It was printed instead.\n")
    assert "all floating-point" in done.stdout


def test_closed_standard_streams(tmp_path: Path, program: str) -> None:
    line = f"{' '.join(FLOPWATCH)} stat --no-time"
    shell = subprocess.run(["sh", "-c", f"{line} -- {program} >&-"], capture_output=True, text=True)
    assert shell.returncode == 2
    assert (
        shell.stderr == "flopwatch: The result cannot be printed: stdout is closed. Save it in a file with -o FILE.\n"
    )
    shell = subprocess.run(["sh", "-c", f"{line} -o {tmp_path}/x.json -- true <&- >&- 2>&-"])
    assert shell.returncode == 0
    assert (tmp_path / "x.json").stat().st_size


# --- Ctrl-C, at a real terminal ---


def terminal(*command: str) -> Terminal:
    return Terminal([*FLOPWATCH, "stat", "--no-time", "--", *command])


def test_ctrl_c_reaches_the_program_and_the_rest_is_shown() -> None:
    shown = terminal(sys.executable, "-c", "x = 1.0\nprint('go', flush=True)\nwhile True: x = x * 1.5 % 2.0")
    shown.wait_for("go")
    shown.press_ctrl_c()
    text = shown.finish()
    assert shown.code == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in text  # the program's own words
    assert text.count("Traceback") == 1
    assert "PARTIAL: Ctrl-C" in text
    assert "all floating-point" in text
    assert shown.is_as_before()


def test_ctrl_c_twice_ends_a_program_that_does_not_listen() -> None:
    shown = terminal("sh", "-c", "trap '' INT; echo go; while :; do sleep 0.1; done")
    shown.wait_for("go")
    shown.press_ctrl_c()
    time.sleep(0.5)
    shown.press_ctrl_c()
    text = shown.finish()
    assert shown.code == 128 + signal.SIGKILL
    assert "PARTIAL: Ctrl-C" in text
    assert "Traceback" not in text
    assert shown.is_as_before()


def test_a_table_on_a_terminal_fits_it(program: str) -> None:
    text = terminal(program).finish()
    assert "\x1b[" in text  # colour, and no line that wraps
    assert max(len(line) for line in _plain(text)) <= Terminal.COLUMNS


def _plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


# --- a disk that is full behind the counts ---

FILL = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        while True: file.write(bytes(4096))
    except OSError: pass
x = 1.0
for i in range(20000): x = x * 1.0001 + i
if os.fork() == 0: os._exit(int(x) > 0)
import threading
thread = threading.Thread(target=lambda: [float(i) * x for i in range(1000)])
thread.start(); thread.join()
print(os.wait()[1], x)
"""


@pytest.mark.parametrize("room", ["4k", "1200k", "2m", "6m"])
def test_a_full_disk_behind_the_counts_ends_nobody(tmp_path: Path, room: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    (tmp_path / "fill.py").write_text(FILL)
    native = subprocess.run([sys.executable, tmp_path / "fill.py", tmp_path / "limited"], **_limited())  # type: ignore[call-overload]
    counted = " ".join([*FLOPWATCH, "stat", "--no-time", "-o", f"{tmp_path}/x.json", "--", sys.executable])
    script = (
        f"mount -t tmpfs -o size={room} tmpfs /dev/shm && export TMPDIR=/dev/shm && "
        f"{counted} {tmp_path}/fill.py /dev/shm/fill"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip("mounting is not permitted here")
    if done.returncode == 4:
        assert done.stderr.startswith("flopwatch: There is no folder to count in. /dev/shm: No space left on device.")
        return
    assert (done.returncode, done.stdout, done.stderr) == (0, native.stdout, "")
    record = run("show", "--json", str(tmp_path / "x.json")).stdout
    assert '"complete": false' in record
    assert "full" in record or "no room" in record


def _limited() -> dict[str, object]:
    """A run whose files cannot grow, which is a full disk too, and needs no mount."""
    import resource

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    return {"preexec_fn": limit, "capture_output": True, "text": True}


def test_attaching_finds_a_folder_that_code_may_be_loaded_from(tmp_path: Path) -> None:
    """Shared memory often forbids that, and somebody else's process needs a copy of the engine that it can read."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a disk and to become somebody else")
    counted = " ".join([*FLOPWATCH, "stat", "-o", f"{tmp_path}/x.json", "-p"])
    script = (
        "mount -t tmpfs -o noexec tmpfs /dev/shm || exit 0; "
        f"(exec setpriv --reuid={NOBODY} --clear-groups sleep 30) & "
        f"sleep 0.5; {counted} $! -- true; code=$?; kill $! && exit $code"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip("mounting is not permitted here")
    assert (done.returncode, done.stderr) == (0, "")


def test_helpers_that_end_a_moment_later_are_waited_for() -> None:
    record = helpers.count(["sh", "-c", "(exec sleep 0.1) & true"]).record
    assert record["complete"], record["partial"]


def test_a_background_process_is_left_alone_after_the_end(tmp_path: Path) -> None:
    """It starts programs without our engine, which is no longer there, and without a word about it."""
    script = f"(sleep 5; env > {tmp_path}/seen 2> {tmp_path}/said; touch {tmp_path}/done) >/dev/null 2>&1 & true"
    done = run("stat", "--no-time", "--", "sh", "-c", script)
    assert done.returncode == 0
    assert "it was still running" in done.stdout.replace("\n", " ")
    for _ in range(100):
        if (tmp_path / "done").exists():
            break
        time.sleep(0.1)
    assert (tmp_path / "said").read_text() == ""
    seen = (tmp_path / "seen").read_text()
    assert "FLOPWATCH_LEDGER" not in seen
    assert "engine.so" not in seen
