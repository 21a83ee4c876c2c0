"""Threads, children, exec, attach, close: with events of the kernel, through the very code that hardware events go through."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from flopwatch.counters.hardware.opening import Event, Opened, not_always_on, open_process, threads_of
from flopwatch.counters.hardware.perf_event import TYPE_SOFTWARE, Linux, Value
from flopwatch.counters.hardware.software import SOFTWARE
from flopwatch.errors import CannotMeasureError, UsageError
from tests.fake_kernel import SEEN, FakeKernel

FAULTS = Event("page-faults", SOFTWARE["page-faults"], TYPE_SOFTWARE)
CLOCK = Event("task-clock", SOFTWARE["task-clock"], TYPE_SOFTWARE)
SWITCHES = Event("context-switches", SOFTWARE["context-switches"], TYPE_SOFTWARE, kernel=True)
PAGES = 2000
TOUCH = f"m = __import__('mmap').mmap(-1, {PAGES} * 4096)\nfor i in range({PAGES}): m[i * 4096] = 1\n"


@pytest.fixture(scope="module", autouse=True)
def _allowed() -> None:
    try:
        Opened(Linux(), [FAULTS], seen=SEEN).close()
    except CannotMeasureError as error:
        pytest.skip(f"perf_event_open does not work here: {error}")


def touch() -> None:
    """As many page faults as there are pages."""
    exec(TOUCH, {})


def faults(opened: Opened, thread: int = 0) -> int:
    return opened.read()[thread][0].counted


def assert_pages(counted: int, times: int = 1, more: int = 400) -> None:
    assert times * PAGES <= counted < times * PAGES + more


def test_the_calling_thread_between_enable_and_disable() -> None:
    with Opened(Linux(), [FAULTS, CLOCK], seen=SEEN) as opened:
        touch()
        assert opened.read() == {0: (Value(0, 0, 0), Value(0, 0, 0))}
        opened.enable()
        touch()
        opened.disable()
        touch()
        faulted, clock = opened.read()[0]
    assert_pages(faulted.counted)
    assert faulted.enabled == faulted.running > 0
    assert abs(clock.counted - clock.running) < 1_000_000
    assert not_always_on([FAULTS, CLOCK], [faulted, clock]) is None


def test_threads_to_come_are_inherited() -> None:
    with Opened(Linux(), [FAULTS], seen=SEEN) as opened:
        opened.enable()
        for _ in range(3):
            thread = threading.Thread(target=touch)
            thread.start()
            thread.join()
        assert_pages(faults(opened), times=3)


def test_without_inheritance_they_are_not() -> None:
    with Opened(Linux(), [FAULTS], seen=SEEN, inherit=False) as opened:
        opened.enable()
        thread = threading.Thread(target=touch)
        thread.start()
        thread.join()
        assert faults(opened) < PAGES // 2


@pytest.fixture
def pool() -> Iterator[list[threading.Event]]:
    """A thread that exists before anything is counted: set the first event to make it work, the second says that it has."""
    go, done, end = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        touch()
        done.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    yield [go, done]
    go.set()
    end.set()
    thread.join()


def test_threads_that_exist_already(pool: list[threading.Event]) -> None:
    go, done = pool
    with open_process(Linux(), [FAULTS], os.getpid(), seen=SEEN, own=True) as opened:
        assert set(opened.threads) == threads_of(os.getpid())
        opened.enable()
        go.set()
        done.wait()
        touch()
        counts = [value.counted for (value,) in opened.read().values()]
    assert sum(count >= PAGES for count in counts) == 2
    assert_pages(sum(counts), times=2)


def test_a_child_by_fork() -> None:
    with Opened(Linux(), [FAULTS], seen=SEEN) as opened:
        opened.enable()
        before = faults(opened)
        pid = os.fork()
        if pid == 0:
            touch()
            os._exit(0)
        os.waitpid(pid, 0)
        assert_pages(faults(opened) - before, more=2000)


def test_a_command_from_its_first_instruction() -> None:
    with Opened(Linux(), [FAULTS, CLOCK], seen=SEEN, on_exec=True) as opened:
        touch()
        assert faults(opened) == 0
        subprocess.run([sys.executable, "-S", "-c", ""], check=True, close_fds=False)
        empty = faults(opened)
        subprocess.run([sys.executable, "-S", "-c", TOUCH], check=True, close_fds=False)
        # A start takes some hundred faults, more of them while files are not in memory yet; nothing of it is missing.
        assert empty > 200
        assert_pages(faults(opened) - empty, more=10 * empty)


def test_a_command_with_children_of_its_own() -> None:
    code = f"import subprocess, sys; [subprocess.run([sys.executable, '-S', '-c', {TOUCH!r}]) for _ in range(2)]"
    with Opened(Linux(), [FAULTS], seen=SEEN, on_exec=True) as opened:
        subprocess.run([sys.executable, "-c", code], check=True, close_fds=False)
        assert faults(opened) > 2 * PAGES


def test_a_process_that_runs_already_with_all_its_threads() -> None:
    code = (
        "import os, threading, time\n"
        f"def work():\n    os.read(0, 1)\n    exec({TOUCH!r}, {{}})\n    os.write(1, b'done\\n')\n    time.sleep(60)\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin and child.stdout
        assert child.stdout.readline() == "ready\n"
        with open_process(Linux(), [FAULTS], child.pid, seen=SEEN) as opened:
            assert len(opened.threads) == 3
            opened.enable()
            child.stdin.write("12")
            child.stdin.flush()
            assert [child.stdout.readline() for _ in range(2)] == ["done\n"] * 2
            counts = [value.counted for (value,) in opened.read().values()]
            child.kill()
            child.wait()
            # What was counted can be read after the end.
            assert [value.counted for (value,) in opened.read().values()] >= counts
    assert sum(count >= PAGES for count in counts) == 2


def test_a_process_that_has_ended() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(UsageError, match=f"Process {child.pid} has ended already"):
        open_process(Linux(), [FAULTS], child.pid, seen=SEEN)


def test_context_switches_happen_in_the_kernel() -> None:
    try:
        opened = Opened(Linux(), [SWITCHES], seen=SEEN)
    except CannotMeasureError as error:
        pytest.skip(f"counting in the kernel is not allowed here: {error}")
    with opened:
        opened.enable()
        for _ in range(20):
            time.sleep(0.001)
        assert faults(opened) >= 20


def test_everything_is_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    opened = Opened(Linux(), [FAULTS, CLOCK], seen=SEEN)
    assert len(os.listdir("/proc/self/fd")) == before + 2
    assert all(not os.get_inheritable(descriptor) for each in opened._descriptors.values() for descriptor in each)
    opened.close()
    opened.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_thread_that_starts_meanwhile_is_neither_lost_nor_counted_twice() -> None:
    lists = [{1}, {1, 2}, {1, 2}, {1, 2}]
    kernel = FakeKernel()
    opened = open_process(kernel, [Event("e", 1)], 1, seen=SEEN, listed=lambda pid: lists.pop(0))
    assert opened.threads == (1, 2)
    assert [pid for _, pid in kernel.opened] == [1, 1, 2]
    assert kernel.closed == 1
    assert all(attr.disabled and attr.inherit for attr, _ in kernel.opened)


def test_a_thread_that_ends_meanwhile_is_looked_for_again() -> None:
    class Ending(FakeKernel):
        def open(self, attr: object, pid: int, cpu: int = -1) -> int:
            if pid == 2:
                raise ProcessLookupError(errno.ESRCH, "")
            return super().open(attr, pid, cpu)  # type: ignore[arg-type]

    lists = [{1, 2}, {1}, {1}]
    assert open_process(Ending(), [Event("e", 1)], 1, seen=SEEN, listed=lambda pid: lists.pop(0)).threads == (1,)


def test_threads_that_come_too_fast_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    threads = {1}

    def listed(pid: int) -> set[int]:
        threads.add(max(threads) + 1)
        return set(threads)

    kernel = FakeKernel()
    with pytest.raises(CannotMeasureError, match="could not be followed"):
        open_process(kernel, [Event("e", 1)], 1, seen=SEEN, listed=listed)
    assert not kernel.events


def test_a_call_that_a_signal_interrupts_is_made_again() -> None:
    class Interrupted(FakeKernel):
        interruptions = 2

        def open(self, attr: object, pid: int, cpu: int = -1) -> int:
            if self.interruptions:
                self.interruptions -= 1
                raise InterruptedError
            return super().open(attr, pid, cpu)  # type: ignore[arg-type]

    assert Opened(Interrupted(), [Event("e", 1)], seen=SEEN).read() == {0: (Value(0, 0, 0),)}


def test_an_event_that_lost_its_counter_for_good() -> None:
    with pytest.raises(CannotMeasureError, match="could not be kept on its counter"):
        Opened(FakeKernel(pinned_off=True), [Event("e", 1)], seen=SEEN).read()


def test_shared_counters_are_found_and_hybrids_are_not_taken_for_them() -> None:
    event = Event("e", 1)
    assert not_always_on([event], [Value(5, 100_000, 99_950)]) is None  # the clock is read twice
    found = not_always_on([event], [Value(5, 100_000, 60_000)])
    assert found is not None and found[1].running == 60_000
    kinds = [Event("e", 1, pmu="cpu_core"), Event("e", 1, pmu="cpu_atom")]
    assert not_always_on(kinds, [Value(5, 100_000, 18_000), Value(9, 100_000, 82_000)], 2) is None
    assert not_always_on(kinds, [Value(5, 100_000, 18_000), Value(9, 100_000, 40_000)], 2) is not None
    # An event that only one kind has may run for any time, but two of one kind for the same.
    one = [Event("e", 1, pmu="cpu_core"), Event("f", 2, pmu="cpu_core")]
    assert not_always_on(one, [Value(5, 100_000, 18_000), Value(9, 100_000, 18_000)], 2) is None
    assert not_always_on(one, [Value(5, 100_000, 18_000), Value(9, 100_000, 9_000)], 2) is not None
