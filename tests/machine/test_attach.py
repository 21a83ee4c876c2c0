"""Attaching to running programs: exact counts, sleepers that notice nothing, programs that go on as if nothing had been."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flopwatch.counters import CommandResult
from flopwatch.counters.instrumented import COUNTER, attaching, stopping
from flopwatch.counters.instrumented.injection import Engine
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.flops import Operation, classify_block
from flopwatch.measuring import measure_process
from tests.machine import helpers

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not COUNTER.available().ok, reason="the instrumented counter does not work here"),
]

SOURCE = Path(__file__).parents[1] / "targets" / "served.c"
WORK = 1000  # multiplications, and as many additions, for each unit of work
WORKERS = 3


class Served:
    """A running program that answers words."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def ask(self, words: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        answer = self.ask("end")
        assert self.process.wait(20) == 0
        return answer


@contextmanager
def serving(argv: list[str], **options: object) -> Iterator[Served]:
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    try:
        assert process.stdout.readline() == "ready\n"
        yield Served(process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("served") / "served")


def build(path: Path, *flags: str) -> str:
    subprocess.run(["gcc", "-O1", "-ffp-contract=off", *flags, "-o", path, SOURCE, "-lpthread"], check=True)
    path.parent.chmod(0o755)
    return str(path)


def attached(pid: int, during: Callable[[], object]) -> CommandResult:
    def wait() -> bool:
        during()
        return False

    return attaching.run(pid, wait)


def counted(result: CommandResult, pid: int | None = None) -> dict[Operation, int]:
    """Floating-point instructions by operation, in one process or in all."""
    found: dict[Operation, int] = {}
    for image in result.processes:
        if pid is None or image.pid == pid:
            for block in image.blocks:
                for key, count in classify_block(block).tally.items():
                    if not str(key.dtype).startswith("int"):
                        found[key.operation] = found.get(key.operation, 0) + count.instructions
    return found


def units(n: int) -> dict[Operation, int]:
    return {Operation.MUL: n * WORK, Operation.ADD: n * WORK}


def is_complete(result: CommandResult) -> bool:
    whole = all(image.complete and all(thread.complete for thread in image.threads) for image in result.processes)
    return whole and not result.reasons


def test_work_is_counted_exactly_by_every_attachment(program: str) -> None:
    with serving([program]) as served:
        for n in (3, 1, 20):
            served.ask("work 5")  # not attached: not counted
            result = attached(served.pid, lambda n=n: served.ask(f"work {n}"))
            assert counted(result) == units(n)
            assert is_complete(result)
            assert [image.how for image in result.processes] == ["attach"]
        assert served.end() == "interrupted 0, early 0"


def test_an_attachment_that_sees_nothing(program: str) -> None:
    with serving([program]) as served:
        assert counted(attached(served.pid, lambda: None)) == {}
        served.end()


def test_threads_are_counted_each_for_itself(program: str) -> None:
    with serving([program]) as served:
        result = attached(served.pid, lambda: served.ask("threads 7"))
        assert counted(result) == units(7 * WORKERS)
        by_thread = {block.scope.thread for block in result.processes[0].blocks}
        assert len(by_thread) == WORKERS and str(served.pid) not in by_thread
        served.end()


def test_sleepers_notice_nothing(program: str) -> None:
    with serving([program, "sleepers"]) as served:
        for n in range(10):
            result = attached(served.pid, lambda n=n: served.ask(f"threads {n + 1}"))
            assert counted(result) == units((n + 1) * WORKERS)
            assert len(result.processes[0].threads) == 1 + WORKERS + 7
            assert is_complete(result)
        assert served.end() == "interrupted 0, early 0"


def test_handlers_are_counted(program: str) -> None:
    with serving([program]) as served:
        result = attached(served.pid, lambda: [served.ask("signal 2") for _ in range(5)])
        assert counted(result) == units(5 * 2)
        assert served.ask("signal 2") == "signal 2"
        served.end()


def test_a_handler_under_way_when_attaching_and_when_leaving(program: str) -> None:
    with serving([program]) as served:
        assert served.ask("nest") == "nested"
        into = attached(served.pid, lambda: [served.ask("work 2"), served.ask("back"), served.ask("work 3")])
        assert counted(into) == units(2 + 3)
        out = attached(served.pid, lambda: [served.ask("nest"), served.ask("work 4")])
        assert counted(out) == units(4)
        served.ask("back")
        assert served.ask("work 1") == "work 1"
        assert counted(attached(served.pid, lambda: served.ask("work 6"))) == units(6)
        served.end()


def test_children_are_followed(program: str) -> None:
    with serving([program]) as served:
        result = attached(served.pid, lambda: [served.ask("fork 4"), served.ask("spawn 6"), served.ask("work 1")])
        assert counted(result, served.pid) == units(1)
        assert counted(result) == units(4 + 6 + 1)
        assert sorted(image.how for image in result.processes) == ["attach", "exec", "fork", "fork"]
        assert is_complete(result)
        assert served.ask("spawn 2") == "spawn 2"
        served.end()


def test_code_that_is_rewritten(program: str) -> None:
    with serving([program]) as served:
        assert served.ask("code 3") == "code 3"
        for n in (5, 600):  # the second way of noticing begins at some hundred changes
            result = attached(served.pid, lambda n=n: served.ask(f"code {n}"))
            assert counted(result) == {Operation.MUL: n}
            assert served.ask("code 7") == "code 7"
        served.end()


def test_a_program_that_dies_while_it_is_counted(program: str) -> None:
    with serving([program]) as served:
        result = attached(served.pid, lambda: [served.ask("die 9"), served.process.wait()])
        assert counted(result) == units(9)
        assert "it did not end by itself (a signal, or a crash)" in result.processes[0].reasons


def test_a_program_that_ends_while_it_is_counted(program: str) -> None:
    with serving([program]) as served:
        result = attached(served.pid, lambda: [served.ask("work 9"), served.end()])
        assert counted(result) == units(9)
        assert result.processes[0].complete


def test_a_static_program(tmp_path: Path) -> None:
    with serving([build(tmp_path / "served", "-static")]) as served:
        record = attached(served.pid, lambda: [served.ask("threads 2"), served.ask("signal 1"), served.ask("fork 3")])
        assert counted(record) == units(2 * WORKERS + 1 + 3)
        served.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start and count another user's program")
def test_another_users_program(program: str) -> None:
    for parent in list(Path(program).parents)[:-2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    with serving([program], user=65534, group=65534) as served:
        assert counted(attached(served.pid, lambda: [served.ask("work 2"), served.ask("spawn 3")])) == units(2 + 3)
        served.end()


def test_a_program_that_never_rests(program: str, tmp_path: Path) -> None:
    """Bounds from the program's own count of what it has begun and what it has done."""
    source = tmp_path / "busy.c"
    source.write_text(
        textwrap.dedent("""\
        #include <stdio.h>
        #include <sys/mman.h>
        #include <fcntl.h>
        static volatile double f = 1.0;
        int main(int argc, char **argv)
        {
          volatile long *n = mmap(0, 4096, 3, MAP_SHARED, open(argv[1], O_RDWR), 0);
          puts("ready"); fflush(stdout);
          while (!n[1]) {
            double x = 1.0;
            for (int i = 0; i < 1000; i++) x *= f;
            if (x != 1.0) return 1;
            n[0]++;
          }
          return argc - 2;
        }
        """)
    )
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "busy", source], check=True)
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(4096))

    def done() -> int:
        return int.from_bytes(progress.read_bytes()[:8], "little")

    def watched() -> tuple[int, int]:
        first = done()
        time.sleep(0.05)
        return first, done()

    with serving([str(tmp_path / "busy"), str(progress)]) as served:
        for _ in range(20):
            inside: list[int] = []
            before = done()
            result = attached(served.pid, lambda inside=inside: inside.extend(watched()))
            after = done()
            muls = counted(result)[Operation.MUL]
            assert (inside[1] - inside[0] - 1) * 1000 <= muls <= (after - before + 1) * 1000
        with progress.open("r+b") as file:
            file.seek(8)
            file.write(b"\x01")
        assert served.process.wait(20) == 0


NUMPY = """
import sys, numpy as np
a = np.arange(65536, dtype=np.float32).reshape(256, 256) % 7
first = a @ a
print("ready", flush=True)
for line in sys.stdin:
    word, *n = line.split()
    if word == "end":
        print("same", flush=True)
        sys.exit(0)
    for _ in range(int(n[0])):
        assert ((a @ a) == first).all()
    print(line.strip(), flush=True)
"""

TORCH = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(2)
conv = torch.nn.Conv2d(64, 64, 3, padding=1)
x = torch.randn(1, 64, 56, 56)
with torch.no_grad():
    first = conv(x)
    print("ready", flush=True)
    for line in sys.stdin:
        word, *n = line.split()
        if word == "end":
            print("same", flush=True)
            sys.exit(0)
        for _ in range(int(n[0])):
            assert torch.equal(conv(x), first)
        print(line.strip(), flush=True)
"""


def test_numpy() -> None:
    with serving([sys.executable, "-c", NUMPY]) as served:
        served.ask("work 1")
        once = flop(attached(served.pid, lambda: served.ask("work 1")))
        thrice = flop(attached(served.pid, lambda: served.ask("work 3")))
        assert once >= 2 * 256**3
        assert thrice == 3 * once
        assert served.end() == "same"


@pytest.mark.torch
def test_torch() -> None:
    with serving([helpers.need_python("torch"), "-c", TORCH]) as served:
        served.ask("work 1")
        result = attached(served.pid, lambda: served.ask("work 1"))
        assert is_complete(result)
        once = counted(result)[Operation.FMA]
        assert counted(attached(served.pid, lambda: served.ask("work 3")))[Operation.FMA] == 3 * once
        assert served.end() == "same"


def flop(result: CommandResult) -> int:
    tallies = [classify_block(block).tally for image in result.processes for block in image.blocks]
    return sum(tally.flop().get(dtype, 0) for tally in tallies for dtype in tally.flop() if str(dtype) == "fp32")


# ---- refusals ----


def test_a_program_that_flopwatch_counts_already(program: str) -> None:
    command = [sys.executable, "-m", "flopwatch", "stat", "--no-time", "--", program]
    with serving(command) as served:
        child = int(Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text().split()[0])
        with pytest.raises(CannotMeasureError, match="counted by flopwatch already"):
            attached(child, lambda: None)
        assert served.ask("work 2") == "work 2"
        served.ask("end")
        assert served.process.wait(60) == 0


def test_two_attachments_at_once(program: str) -> None:
    with serving([program]) as served:

        def second() -> None:
            with pytest.raises(CannotMeasureError, match="counted by flopwatch already"):
                attached(served.pid, lambda: None)
            served.ask("work 2")

        assert counted(attached(served.pid, second)) == units(2)
        served.end()


def test_a_program_under_a_debugger(program: str) -> None:
    tracer = (
        "import sys; from flopwatch.counters.instrumented import ptrace; ptrace.seize(int(sys.argv[1]));"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with serving([program]) as served, serving([sys.executable, "-c", tracer, str(served.pid)]):
        with pytest.raises(CannotMeasureError, match="is being traced by process"):
            measure_process(served.pid)
        with pytest.raises(CannotMeasureError, match="is being traced by process"):
            attached(served.pid, lambda: None)
        assert served.ask("work 1") == "work 1"


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen(["true"])
    with pytest.raises(UsageError, match="ended already"):
        while process.poll() is None:
            pass
        attached(process.pid, lambda: None)


# ---- states in which a process may be ----


def test_a_process_that_is_stopped(program: str) -> None:
    with serving([program]) as served:
        served.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)

        def during() -> None:
            deadline = time.monotonic() + 5  # let go, it passes through the scheduler before it stops again
            while stopping.status(served.pid)["State"][0] != "T":
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.1)
            assert stopping.status(served.pid)["State"][0] == "T"
            served.process.send_signal(signal.SIGCONT)
            served.ask("work 2")

        assert counted(attached(served.pid, during)) == units(2)
        assert served.end() == "interrupted 0, early 0"


def killed_while_it_counts(pid: int) -> None:
    host = "import sys; from flopwatch.counters.instrumented import attaching; "
    host += "attaching.run(int(sys.argv[1]), lambda: print('ready', flush=True) or sys.stdin.read())"
    with serving([sys.executable, "-c", host, str(pid)]) as killed:
        killed.process.kill()
        killed.process.wait()


def test_a_flopwatch_that_is_killed_leaves_a_program_that_can_be_counted(program: str) -> None:
    with serving([program]) as served:
        killed_while_it_counts(served.pid)
        served.ask("work 1")
        assert counted(attached(served.pid, lambda: served.ask("work 3"))) == units(3)
        served.end()


def test_a_thread_that_a_killed_flopwatch_left_translating_is_waited_for(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, translating = Engine.call, [1, 1, 1]

    def busy(engine: Engine, name: str, *arguments: Any) -> int:
        return translating.pop() if name == "freeze" and translating else call(engine, name, *arguments)

    with serving([program]) as served:
        killed_while_it_counts(served.pid)
        monkeypatch.setattr(Engine, "call", busy)
        assert counted(attached(served.pid, lambda: served.ask("work 3"))) == units(3)
        assert not translating
        served.end()


def test_a_sandbox_is_refused(program: str) -> None:
    filtered = (
        "import ctypes, os, sys; libc = ctypes.CDLL(None); libc.prctl(38, 1, 0, 0, 0);"
        "code = ctypes.create_string_buffer(bytes.fromhex('060000000000ff7f'));"
        "program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(code));"
        "assert libc.prctl(22, 2, ctypes.byref(program)) == 0; os.execv(sys.argv[1], sys.argv[1:])"
    )
    with serving([sys.executable, "-c", filtered, program]) as served:
        with pytest.raises(CannotMeasureError, match="sandbox"):
            attached(served.pid, lambda: None)
        served.end()


def test_a_thread_that_cannot_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent in vfork sleeps until its child has gone on."""
    source = tmp_path / "vforking.c"
    source.write_text(
        '#include <stdio.h>\n#include <unistd.h>\nint main() { puts("ready"); fflush(stdout); if (!vfork()) { char c; read(0, &c, 1);'
        ' _exit(0); } puts("on"); return 0; }\n'
    )
    subprocess.run(["gcc", "-o", tmp_path / "vforking", source], check=True)
    monkeypatch.setattr(stopping, "PATIENCE", 0.5)
    with serving([str(tmp_path / "vforking")]) as served:
        time.sleep(0.1)
        with pytest.raises(CannotMeasureError, match="could not be stopped"):
            attached(served.pid, lambda: None)
        assert served.ask("x") == "on"
        assert served.process.wait(20) == 0
