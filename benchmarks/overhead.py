"""What counting costs, as ratios: both sides of each are measured here, in one run, in turns.

    python benchmarks/overhead.py [--python PYTHON] [--rounds N] [--without-valgrind]

PYTHON is one with torch and torchvision (default: FLOPWATCH_TORCH_PYTHON, else this one). Prints a Markdown table and ends with
exit code 1 if a ratio misses its limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STEADY_LIMIT = 2.0
WHOLE_LIMIT = 1.5
VALGRIND_LIMIT = 20.0

CONV_NET = """
import time, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(2)
net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
).eval()
image = torch.randn(4, 3, 112, 112)
times = []
with torch.inference_mode():
    for _ in range(5):
        net(image)
    for _ in range(30):
        start = time.perf_counter()
        net(image)
        times.append(time.perf_counter() - start)
print(sorted(times)[len(times) // 2])
"""

RESNET18 = """
import torch, torchvision
torch.manual_seed(0)
net = torchvision.models.resnet18(weights=None).eval()
with torch.inference_mode():
    print(net(torch.randn(1, 3, 224, 224)).argmax().item())
"""


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


def seconds(command: Sequence[str], output: bool = False) -> float:
    """Wall time of a command, or with `output` the number that it prints last; raises if it fails."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    passed = time.perf_counter() - start
    return float(done.stdout.split()[-1]) if output else passed


def in_turns(first: Sequence[str], second: Sequence[str], rounds: int, output: bool = False) -> tuple[float, float]:
    """Medians of two commands, run alternately so that a slow moment of the machine meets both."""
    seconds(first, output)  # the files come from the cache from here on
    pairs = [(seconds(first, output), seconds(second, output)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def stat(folder: Path, *command: str) -> tuple[str, ...]:
    """A command line that counts `command` once."""
    record = str(folder / "record.json")
    return (sys.executable, "-m", "flopwatch", "stat", "--no-time", "--json", "-o", record, "--", *command)


def measure(python: str, rounds: int, folder: Path, valgrind: bool) -> list[Ratio]:
    """All ratios."""
    conv, resnet = folder / "conv_net.py", folder / "resnet18.py"
    conv.write_text(CONV_NET)
    resnet.write_text(RESNET18)
    native, counted = in_turns((python, str(conv)), stat(folder, python, str(conv)), rounds, output=True)
    ratios = [Ratio("one pass of a warm conv net, counted / native", counted, native, STEADY_LIMIT)]
    native, counted = in_turns((python, str(resnet)), stat(folder, python, str(resnet)), rounds)
    ratios.append(Ratio("torch import and one ResNet-18 inference, counted / native", counted, native, WHOLE_LIMIT))
    if valgrind:
        out = f"--callgrind-out-file={folder / 'callgrind'}"
        slow = seconds(("valgrind", "-q", "--tool=callgrind", out, python, str(resnet)))
        ratios.append(Ratio("the same, callgrind / counted", slow, counted, VALGRIND_LIMIT, at_least=True))
    return ratios


def main() -> int:
    """Measure, print, and say whether all limits are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=os.environ.get("FLOPWATCH_TORCH_PYTHON", sys.executable))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-valgrind", action="store_true")
    arguments = parser.parse_args()
    valgrind = not arguments.without_valgrind and shutil.which("valgrind") is not None
    with tempfile.TemporaryDirectory() as folder:
        ratios = measure(arguments.python, arguments.rounds, Path(folder), valgrind)
    print("| what | seconds | ratio | limit | |\n| --- | --- | --- | --- | --- |")
    for each in ratios:
        sign = "≥" if each.at_least else "≤"
        verdict = "held" if each.held else "MISSED"
        print(
            f"| {each.what} | {each.numerator:.4g} / {each.denominator:.4g} | {each.value:.2f} | {sign} {each.limit:g} | {verdict} |"
        )
    if not valgrind:
        print("\nValgrind was left out.")
    return 0 if all(each.held for each in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
