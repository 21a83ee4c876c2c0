"""What counting costs, as ratios: both sides of each are measured here, in one run, in turns.

    python benchmarks/overhead.py [--python PYTHON] [--rounds N] [--without-valgrind]

PYTHON is one with torch and torchvision (default: FLOPWATCH_TORCH_PYTHON, else this one); flopwatch itself need not be
installed there, but what it depends on must. Times are the best of N rounds (default 5). No side has the extra run that stat
makes for its time. Prints a Markdown table and ends with exit code 1 if a ratio misses its limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import flopwatch

STEADY_LIMIT = 2.0
WHOLE_LIMIT = 1.5
VALGRIND_LIMIT = 20.0

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


def run(command: Sequence[str]) -> tuple[float, list[float]]:
    """Wall time of a command, and the numbers that it prints; raises if it fails."""
    path = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH"))))
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})
    return time.perf_counter() - start, [float(word) for word in done.stdout.split()]


def in_turns(commands: Sequence[Sequence[str]], rounds: int) -> list[tuple[float, float]]:
    """Least wall time and least last number printed, of commands run in turns: other work on the machine only ever adds time."""
    results: list[list[tuple[float, float]]] = [[] for _ in commands]
    for number in range(rounds + 1):
        for command, kept in zip(commands, results, strict=True):
            wall, printed = run(command)
            if number:  # the first round brings the files into memory
                kept.append((wall, printed[-1]))
    return [(min(wall for wall, _ in kept), min(printed for _, printed in kept)) for kept in results]


def stat(folder: Path, *command: str) -> tuple[str, ...]:
    """A command line that counts `command` once."""
    record = str(folder / "record.json")
    return (sys.executable, "-m", "flopwatch", "stat", "--no-time", "--json", "-o", record, "--", *command)


def spans(python: str, rounds: int) -> list[Ratio]:
    """A process that counts itself for a while: what the time before and the time after pay."""
    each = [run((python, CONV_NET, "spans"))[1] for _ in range(rounds)]
    bare, before, within, after = (min(column) for column in zip(*each, strict=True))
    return [
        Ratio("the same in process: before the first span / without flopwatch", before, bare, IDLE_LIMIT),
        Ratio("the same in process: within a span / without flopwatch", within, bare, STEADY_LIMIT),
        Ratio("the same in process: after the span / without flopwatch", after, bare, IDLE_LIMIT),
    ]


def measure(python: str, rounds: int, folder: Path, valgrind: bool) -> Iterator[Ratio]:
    """All ratios."""
    conv, resnet = (python, CONV_NET), (python, RESNET18, "1")
    (_, native), (_, counted) = in_turns((conv, stat(folder, *conv)), rounds)
    yield Ratio("one pass of a warm conv net, counted / native", counted, native, STEADY_LIMIT)
    yield from spans(python, rounds)
    timed = (sys.executable, "-I", "-c", TIMER, *resnet)
    (_, native), (whole, counted) = in_turns((timed, stat(folder, *timed)), rounds)
    yield Ratio("torch import and one ResNet-18 inference: the counted run / native", counted, native, WHOLE_LIMIT)
    yield Ratio("the same: all of stat, with reading and report / native", whole, native, WHOLE_LIMIT)
    if valgrind:
        out = f"--callgrind-out-file={folder / 'callgrind'}"
        slow, _ = run(("valgrind", "-q", "--tool=callgrind", out, *resnet))
        yield Ratio("the same: callgrind / all of stat", slow, whole, VALGRIND_LIMIT, at_least=True)


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
