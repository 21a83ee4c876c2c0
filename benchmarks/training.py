"""Seconds for an epoch of `flopwatch train` and of pytorch/examples' imagenet/main.py: same folder, network, batch, workers.

    python benchmarks/training.py --example main.py --data DIR [--arch resnet18] [--batch 32] [--workers 2] [--pairs 5]

The script is brought from outside and is no part of this project. It always works at 224 pixels with a head of 1000 outputs
and does not say how long an epoch takes. So each side runs with one epoch and with two, training and validation, and the
difference is an epoch without start-up, imports and the end: of flopwatch too, whose own figure stands beside it. Sides take
turns; the result is the median of the pairs' ratios, the example's seconds by ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def timed(command: list[str], folder: str) -> tuple[float, str]:
    """Seconds that a command took, and what it printed; raises RuntimeError with the end of its errors if it fails."""
    begin = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ)
    seconds = time.perf_counter() - begin
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return seconds, ended.stdout


def example(script: Path, asked: argparse.Namespace, epochs: int, folder: str) -> float:
    """Seconds of the example for so many epochs."""
    options = [
        "-a",
        asked.arch,
        "-b",
        str(asked.batch),
        "-j",
        str(asked.workers),
        "--epochs",
        str(epochs),
        "-p",
        "1000",
    ]
    return timed([sys.executable, str(script), *options, "--no-accel", str(asked.data)], folder)[0]


def ours(asked: argparse.Namespace, epochs: int, folder: str) -> tuple[float, list[float]]:
    """Seconds of flopwatch for so many epochs, and those that it gives for each itself, with its validation."""
    options = ["-a", asked.arch, "--data", str(asked.data), "--batch", str(asked.batch), "--epochs", str(epochs)]
    options += ["--workers", str(asked.workers), "--classes", "1000", "--recipe", "imagenet-example", "--device", "cpu"]
    options += ["--output", str(Path(folder) / f"run{epochs}"), "--no-probe", "--json"]
    seconds, out = timed([sys.executable, "-m", "flopwatch", "train", *options], folder)
    return seconds, [row["seconds"] + row["validation_seconds"] for row in json.loads(out)["rows"]]


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
            theirs = {epochs: example(script, asked, epochs, folder) for epochs in (1, 2)}
            mine = {epochs: ours(asked, epochs, folder) for epochs in (1, 2)}
        epoch, own = theirs[2] - theirs[1], mine[2][0] - mine[1][0]
        ratios.append(epoch / own)
        print(
            f"pair {pair + 1}: example {epoch:.1f} s, flopwatch {own:.1f} s (its own clock: {mine[2][1][-1]:.1f} s), "
            f"ratio {ratios[-1]:.3f}",
            flush=True,
        )
    print(f"median of {len(ratios)}: {statistics.median(ratios):.3f} ×, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
