"""What counting costs, as ratios: both sides of each are measured here, in one run, in turns.

    python benchmarks/overhead.py [--python PYTHON] [--rounds N] [--without-valgrind]

PYTHON is one with torch and torchvision (default: FLOPWATCH_TORCH_PYTHON, else this one); flopwatch itself need not be
installed there, but what it depends on must. Times are the best of N rounds (default 5). No side has the extra run that stat
makes for its time. Prints a Markdown table and ends with exit code 1 if a ratio misses its limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from once import stat

import flopwatch

STEADY_LIMIT = 2.0
WHOLE_LIMIT = 1.5
VALGRIND_LIMIT = 20.0

# Whether malloc gives the memory of a pass back to the system, and takes it again, page by page, in the next, depends on what lies
# behind it in the heap: any import can change that, and with it the time of a pass by a quarter. On both sides it is kept.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}

IDLE_LIMIT = 1.1  # nothing, as far as a busy machine can tell

PROGRAMS = Path(__file__).parent / "programs"
CONV_NET, RESNET18 = str(PROGRAMS / "torch_conv_net.py"), str(PROGRAMS / "torch_resnet18.py")
SOURCE = str(Path(flopwatch.__file__).parent.parent)

# Runs a command and prints its wall time: under stat it is a parent of what is timed, so that reading and reporting are left out.
TIMER = (
    "import subprocess, sys, time; start = time.perf_counter(); "
    "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(time.perf_counter() - start)"
)


@dataclass(frozen=True)
class Ratio:
    """One row: seconds of both sides, their quotient, and the limit it is held to."""

    what: str
    numerator: float
    denominator: float
    limit: float
    at_least: bool = False

    @property
    def value(self) -> float:
        """Numerator over denominator."""
        return self.numerator / self.denominator

    @property
    def held(self) -> bool:
        """Whether the limit is met."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Cost:
    """What a command took: wall time, processor time of it and its children (seconds), and the numbers that it printed."""

    wall: float
    processor: float
    printed: tuple[float, ...]


def run(command: Sequence[str]) -> Cost:
    """Run a command to its end; raises if it fails."""
    path = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH"))))
    before, start = processor_time(), time.perf_counter()
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path} | KEEP_MEMORY
    )
    wall = time.perf_counter() - start
    return Cost(wall, processor_time() - before, tuple(float(word) for word in done.stdout.split()))


def processor_time() -> float:
    """Seconds that all children which have ended spent on processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_turns(commands: Sequence[Sequence[str]], rounds: int) -> list[Cost]:
    """The least of everything over some rounds of commands in turns: other work on the machine only ever adds time."""
    for command in commands:
        run(command)  # brings the files into memory
    results = [[run(command) for command in commands] for _ in range(rounds)]
    return [
        Cost(
            min(cost.wall for cost in costs),
            min(cost.processor for cost in costs),
            tuple(map(min, zip(*(cost.printed for cost in costs), strict=True))),
        )
        for costs in zip(*results, strict=True)
    ]


def measure(python: str, rounds: int, folder: Path, valgrind: bool) -> Iterator[Ratio]:
    """All ratios."""
    conv, resnet = (python, CONV_NET), (python, RESNET18, "1")
    native, counted = in_turns((conv, stat(folder / "record.json", "--", *conv)), rounds)
    yield Ratio("one pass of a warm conv net: counted / native", counted.printed[0], native.printed[0], STEADY_LIMIT)
    # In one process, what the time before a span and the time after it pay.
    phases = [run((python, CONV_NET, "spans")).printed for _ in range(rounds)]
    for index, when, limit in (
        (1, "before the first span", IDLE_LIMIT),
        (2, "within a span", STEADY_LIMIT),
        (3, "after the span", IDLE_LIMIT),
    ):
        # Of the round in the middle: both sides are of one process, moments apart, and the clock of the machine wanders between rounds.
        middle = sorted(phases, key=lambda phase: phase[index] / phase[0])[len(phases) // 2]
        yield Ratio(f"the same in process: {when} / without flopwatch", middle[index], middle[0], limit)
    timed = (sys.executable, "-I", "-c", TIMER, *resnet)
    native, whole = in_turns((timed, stat(folder / "record.json", "--", *timed)), rounds)
    what = "torch import and one ResNet-18 inference"
    yield Ratio(f"{what}: the counted run / native", whole.printed[0], native.printed[0], WHOLE_LIMIT)
    yield Ratio("the same: all of stat, with reading and report / native", whole.wall, native.printed[0], WHOLE_LIMIT)
    yield Ratio("the same, processor time", whole.processor, native.processor, WHOLE_LIMIT)
    if valgrind:
        out = f"--callgrind-out-file={folder / 'callgrind'}"
        slow = run(("valgrind", "-q", "--tool=callgrind", out, *resnet))
        yield Ratio("the same: callgrind / all of stat", slow.wall, whole.wall, VALGRIND_LIMIT, at_least=True)
        yield Ratio("the same, processor time", slow.processor, whole.processor, VALGRIND_LIMIT, at_least=True)


def main() -> int:
    """Measure, print, and say whether all limits are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=os.environ.get("FLOPWATCH_TORCH_PYTHON", sys.executable))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-valgrind", action="store_true")
    arguments = parser.parse_args()
    valgrind = not arguments.without_valgrind and shutil.which("valgrind") is not None
    with tempfile.TemporaryDirectory() as folder:
        print("| what | seconds | ratio | limit | |\n| --- | --- | --- | --- | --- |")
        ratios = []
        for each in measure(arguments.python, arguments.rounds, Path(folder), valgrind):
            ratios.append(each)
            limit = f"{'≥' if each.at_least else '≤'} {each.limit:g}"
            seconds = f"{each.numerator:.4g} / {each.denominator:.4g}"
            verdict = "held" if each.held else "MISSED"
            print(f"| {each.what} | {seconds} | {each.value:.2f} | {limit} | {verdict} |", flush=True)
    if not valgrind:
        print("\nValgrind was left out.")
    return 0 if all(each.held for each in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
