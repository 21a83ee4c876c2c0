"""Seconds for an epoch of `flopwatch train` and of pytorch/examples' imagenet/main.py: same folder, network, batch, workers.

    python benchmarks/training.py --example main.py --data DIR [--arch resnet18] [--batch 32] [--workers 2] [--pairs 5]

The script is brought from outside and is no part of this project. It always works at 224 pixels with a head of 1000 outputs.
Each side trains two epochs and validates after each; compared is the second, by its own clock: the example prints a running mean
of the seconds of a batch, which times the number of batches is the epoch, and flopwatch gives seconds. Sides take turns. The
result is the median of the pairs' ratios, the example's seconds by ours. The processor time of all processes of a side, start-up
and both epochs, stands beside it: on a busy machine it is steadier.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"^(Epoch: \[1\]|Test: )\[ *(\d+)/(\d+)\]\s+Time +[\d.]+ \( *([\d.]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """Seconds of the second epoch, training and validation, and processor seconds of the whole program."""

    epoch: float
    processor: float


def ran(command: list[str], folder: str) -> tuple[str, float]:
    """What a command printed, and its processor seconds; raises RuntimeError with the end of its errors if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return ended.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_of(printed: str) -> float:
    """The second epoch of the example, from the last line of its training and the last of its validation."""
    found = {kind[:4]: (int(batches), float(mean)) for kind, _, batches, mean in LINE.findall(printed)}
    return sum(batches * mean for batches, mean in (found["Epoc"], found["Test"]))


def example(script: Path, asked: argparse.Namespace, folder: str) -> Run:
    """Two epochs of the example."""
    options = ["-a", asked.arch, "-b", str(asked.batch), "-j", str(asked.workers), "--epochs", "2", "-p", "1"]
    printed, processor = ran([sys.executable, str(script), *options, "--no-accel", str(asked.data)], folder)
    return Run(seconds_of(printed), processor)


def ours(asked: argparse.Namespace, folder: str) -> Run:
    """Two epochs of flopwatch, which writes its checkpoints as the example does."""
    options = ["-a", asked.arch, "--data", str(asked.data), "--batch", str(asked.batch), "--epochs", "2"]
    options += ["--workers", str(asked.workers), "--classes", "1000", "--recipe", "imagenet-example", "--device", "cpu"]
    options += ["--output", str(Path(folder) / "run"), "--no-probe", "--json"]
    printed, processor = ran([sys.executable, "-m", "flopwatch", "train", *options], folder)
    row = json.loads(printed)["rows"][1]
    return Run(row["seconds"] + row["validation_seconds"], processor)


def main() -> None:
    """Measure pairs and print each, then the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--example", type=Path, required=True, metavar="PATH", help="imagenet/main.py of pytorch/examples"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="a folder with train/ and val/")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=3)
    asked = parser.parse_args()
    asked.data = asked.data.resolve()
    script = asked.example.resolve()
    ratios = []
    for pair in range(asked.pairs):
        with tempfile.TemporaryDirectory() as folder:
            theirs, mine = example(script, asked, folder), ours(asked, folder)
        ratios.append(theirs.epoch / mine.epoch)
        print(
            f"pair {pair + 1}: epoch of the example {theirs.epoch:.2f} s, of flopwatch {mine.epoch:.2f} s, ratio {ratios[-1]:.3f}; "
            f"processor {theirs.processor:.1f} s, {mine.processor:.1f} s",
            flush=True,
        )
    print(f"median of {len(ratios)}: {statistics.median(ratios):.3f} ×, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
