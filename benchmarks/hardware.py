"""What counting by hardware costs, measured with events of the kernel, which every machine has and which take the same way.

    python benchmarks/hardware.py [--seconds S] [--rounds N] [--without-stat]

Prints the cost of a border between spans in nanoseconds, of a read against a look at the mapped page, and how much longer a
program of S seconds takes under `flopwatch stat`, as ratios. Ends with exit code 1 if a ratio misses its limit.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from flopwatch.counters import RawEvent
from flopwatch.counters.hardware import surroundings
from flopwatch.counters.hardware.inprocess import Engine
from flopwatch.counters.hardware.perf_event import TYPE_RAW, TYPE_SOFTWARE, Attr, Linux
from flopwatch.counters.hardware.plan import raw_plan
from flopwatch.counters.hardware.software import SOFTWARE
from flopwatch.labelled import Counting
from flopwatch.scope import Scope

LIMIT, WITH_START_UP = 1.01, 1.05
# The same work each time, and its own CPU time as its output.
PROGRAM = """
import sys, time
begin = time.process_time()
for _ in range({rounds}):
    sum(range(1000000))
print(time.process_time() - begin)
"""


def nanoseconds(do: Callable[[], object], times: int = 20_000) -> float:
    """The median of seven times the mean of so many calls."""
    found = []
    for _ in range(7):
        begin = time.perf_counter_ns()
        for _ in range(times):
            do()
        found.append((time.perf_counter_ns() - begin) / times)
    return statistics.median(found)


def border(events: int, threads: int) -> float:
    """The cost of entering and leaving a span, halved, in nanoseconds."""
    names = list(SOFTWARE)[:events]
    plan = raw_plan([RawEvent(name) for name in names], (), None)
    end = threading.Event()
    others = [threading.Thread(target=end.wait) for _ in range(threads - 1)]
    for each in others:
        each.start()
    try:
        counting = Counting(Engine(plan, Linux(), surroundings.look()))
        inner = Scope(span="inner")

        def twice() -> None:
            with counting.scopes.enter(inner):
                pass

        with counting:
            return nanoseconds(twice, 2000) / 2
    finally:
        end.set()
        for each in others:
            each.join()


def reads() -> list[tuple[str, float | None]]:
    """One event of the calling thread: by system call, and by its page where that may be read (needs a PMU)."""
    kernel = Linux()
    software = kernel.open(Attr(TYPE_SOFTWARE, SOFTWARE["page-faults"]), 0)
    kernel.enable(software)
    found: list[tuple[str, float | None]] = [("read() of one event", nanoseconds(lambda: kernel.read(software)))]
    page = kernel.page(software)
    found.append(("a look at its page, which refuses (software)", nanoseconds(page.read)))
    page.close()
    kernel.close(software)
    by_rdpmc = None
    if surroundings.pmus():
        instructions = kernel.open(Attr(TYPE_RAW, 0xC0), 0)
        kernel.enable(instructions)
        page = kernel.page(instructions)
        if page.read() is not None:
            by_rdpmc = nanoseconds(page.read)
        page.close()
        kernel.close(instructions)
    found.append(("rdpmc by its page (a hardware event)", by_rdpmc))
    return found


def stat_ratios(seconds: float, rounds: int) -> list[tuple[str, float, float, float]]:
    """CPU time of a program counted and alone, and of the whole command and the program alone: the least of runs in turns.

    CPU time, since other work on the machine moves wall time by more than what is to be seen; the least, for the same reason.
    """
    trial = PROGRAM.format(rounds=20)
    speed = 20 / float(subprocess.run([sys.executable, "-c", trial], check=True, capture_output=True, text=True).stdout)
    alone = [sys.executable, "-c", PROGRAM.format(rounds=round(speed * seconds))]
    counted = [
        sys.executable,
        "-m",
        "flopwatch",
        "stat",
        "-e",
        "page-faults,task-clock",
        "--no-time",
        "-x",
        " ",
        "--",
        *alone,
    ]
    own: dict[str, list[float]] = {"alone": [], "counted": []}
    whole: dict[str, list[float]] = {"alone": [], "counted": []}
    for _ in range(rounds):
        for name, command in (("alone", alone), ("counted", counted)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            whole[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            own[name].append(float(done.stdout.split()[0]))
    added = min(total - program for total, program in zip(whole["counted"], own["counted"], strict=True))
    bare = min(total - program for total, program in zip(whole["alone"], own["alone"], strict=True))
    least = min(own["alone"])
    return [
        ("the program, counted / alone", min(own["counted"]), least, LIMIT),
        ("the same with all that flopwatch does before and after it", least + added - bare, least, WITH_START_UP),
    ]


def main() -> int:
    """Measure, print, and say whether the limits are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-stat", action="store_true")
    arguments = parser.parse_args()
    print("| a border between two spans | events | threads | ns |\n| --- | --- | --- | --- |")
    for events, threads in ((1, 1), (4, 1), (8, 1), (4, 4), (8, 8)):
        print(f"| settle | {events} | {threads} | {border(events, threads):,.0f} |")
    print("\n| reading | ns |\n| --- | --- |")
    for what, cost in reads():
        print(f"| {what} | {'no PMU, or not allowed here' if cost is None else f'{cost:,.0f}'} |")
    if arguments.without_stat:
        return 0
    print(
        f"\n| a program of {arguments.seconds:g} s under `stat` | CPU seconds | ratio | limit | |\n| --- | --- | --- | --- | --- |"
    )
    held = True
    for what, counted, alone, limit in stat_ratios(arguments.seconds, arguments.rounds):
        fine = counted / alone < limit
        held &= fine
        print(
            f"| {what} | {counted:.3f} / {alone:.3f} | {counted / alone:.4f} | < {limit} | {'held' if fine else 'MISSED'} |"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
