"""Counting inside a running process: what notebooks, servers and long trainings do to it. Each script is a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.engine

BEGIN = """
import os, signal, threading, time
import flopwatch

SIZE = 1000

def work(times=SIZE):
    x = 1.0
    for _ in range(times):
        x = x * 1.5 % 2.0
    return x

work()
"""


def run(script: str) -> str:
    """What a script prints; it must end well and say nothing on stderr."""
    text = BEGIN + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_counting_again_and_again_costs_no_memory_and_no_thread() -> None:
    printed = run("""
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        totals, sizes = set(), []
        other = threading.Thread(target=time.sleep, args=(60,), daemon=True)
        other.start()
        for _ in range(100):
            with flopwatch.count() as counted:
                work()
            assert counted.record.complete, counted.record.partial
            totals.add(counted.total)
            sizes.append(resident())
        assert sizes[-1] - sizes[10] < 4 << 20, sizes
        print(len(totals), len(os.listdir("/proc/self/task")))
    """)
    assert printed == "1 2\n"


def test_the_log_does_not_grow_with_time() -> None:
    printed = run("""
        from flopwatch.counters.instrumented import inprocess
        lengths = []
        with flopwatch.count() as counted:
            for _ in range(5):
                for _ in range(200):
                    with counted.span("first"):
                        work(10)
                    with counted.span("second"):
                        work(20)
                lengths.append(inprocess._engine().flopwatch_log_length())
        assert lengths[-1] < lengths[0] + 100, lengths
        first, second = (sum(counted.record.flop(row.tally).values()) for row in sorted(counted.rows(), key=lambda row: row.name)[-2:])
        print(first, second)
    """)
    first, second = map(int, printed.split())
    assert first % (5 * 200) == 0
    assert second == 2 * first


BLOCKING = """
    def blocks_all(work_too):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ready.set()
        os.read(reader, 1)
        if work_too:
            work()
        os.read(reader, 1)
    reader, writer = os.pipe()
    ready = threading.Event()
    thread = threading.Thread(target=blocks_all, args=({0},))
    thread.start()
    ready.wait()
    time.sleep(0.1)
    begun = time.perf_counter()
    with flopwatch.count() as counted:
        if {0}:
            os.write(writer, b"!")
            time.sleep(0.2)
        work()
    assert time.perf_counter() - begun < 5
    os.write(writer, b"!!")
    thread.join()
    print(counted.record.complete, *counted.record.partial)
"""


def test_a_thread_that_blocks_all_signals_and_sleeps_is_no_loss() -> None:
    """Message libraries have such threads, and so has every notebook."""
    assert run(BLOCKING.format(False)) == "True\n"


def test_a_thread_that_blocks_all_signals_and_works_makes_the_record_partial() -> None:
    printed = run(BLOCKING.format(True))
    assert printed.startswith("False thread ")
    assert " blocks signals and was not counted; it ran for " in printed


def test_ctrl_c_in_a_count_passes_through_and_the_next_count_works() -> None:
    printed = run("""
        with flopwatch.count() as before:
            work()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            with flopwatch.count() as cut:
                while True:
                    work()
        except KeyboardInterrupt:
            print("passed", cut.total > 0, cut.record.complete)
        time.sleep(0.2)
        with flopwatch.count() as after:
            work()
        print(after.total == before.total, after.record.complete)
    """)
    assert printed == "passed True True\nTrue True\n"


def test_errors_inside_and_counts_inside_a_count_leave_the_next_one_whole() -> None:
    printed = run("""
        with flopwatch.count() as before:
            work()
        try:
            with flopwatch.count():
                with flopwatch.count():
                    pass
        except flopwatch.errors.FlopwatchError as error:
            print(error)
        try:
            with flopwatch.count() as cut:
                work()
                1 / 0
        except ZeroDivisionError:
            print(cut.total >= before.total)
        with flopwatch.count() as after:
            work()
        print(after.total == before.total)
    """)
    assert printed == ("Counting is under way already. End the first `with flopwatch.count()` before.\nTrue\nTrue\n")


def test_programs_that_are_started_inside_make_the_record_partial() -> None:
    printed = run("""
        import subprocess
        import flopwatch

        with flopwatch.count() as counted:
            subprocess.run(["true"])
            subprocess.run("true", shell=True)
        print(counted.record.partial)
    """)
    assert printed == "('2 child processes were not counted',)\n"
