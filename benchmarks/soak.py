"""The same count again and again: many runs of a torch script, of a late attach to a process full of libraries, and of a C++ program.

    python benchmarks/soak.py [--runs 100] [--python PYTHON] [torch] [attach] [cpp]

PYTHON is one with torch (default: FLOPWATCH_TORCH_PYTHON, else this one). A run fails if stat fails, if the program's output or exit
code differs from its run without counting, if the record is partial, or if a count differs from the first run's. Ends with 1 if any did.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from once import stat

TARGETS = Path(__file__).parent.parent / "tests" / "targets"
LIMIT_SECONDS = 600
ENVIRONMENT = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

TORCH = """
import torch
torch.manual_seed(0)
torch.set_num_threads(2)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 10)
)
loss = net(torch.randn(4, 3, 64, 64)).square().sum()
loss.backward()
print(loss.item())
"""

ATTACH = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(2)
conv, image = torch.nn.Conv2d(32, 32, 3), torch.randn(1, 32, 56, 56)
with torch.inference_mode():
    conv(image)
    open(sys.argv[1], "w").write("ready")
    while open(sys.argv[2]).read().strip() != "end":
        result = conv(image).sum().item()
        open(sys.argv[3], "w").write("done")
print(result)
"""

Outcome = tuple[str, str]
"""What a run counted, and what was wrong with it ("" if nothing)."""


def read(record: Path) -> Outcome:
    """The counts in a record, and its reasons for being partial."""
    found = json.loads(record.read_text())
    flop = " ".join(f"{dtype} {count:,}" for dtype, count in sorted(found["flop"].items()) if count)
    return flop, "" if found["complete"] else f"partial: {found['partial']}"


def run(command: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_SECONDS, env=ENVIRONMENT
    )
    return done.returncode, done.stdout, done.stderr


def spawned(command: Sequence[str], folder: Path) -> Outcome:
    """One counted run of a command, compared with one that is not counted."""
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    native, counted = run(command), run(stat(record, "--", *command))
    if not record.exists():
        return "", f"no record: {counted}"
    flop, wrong = read(record)
    return flop, wrong if counted == native else f"{counted} instead of {native}"


def attached(python: str, folder: Path) -> Outcome:
    """One attach to a process that has loaded its libraries and run once: exactly one more pass is counted, and the process lives on."""
    script, ready, ask, answer = folder / "attach.py", folder / "ready", folder / "ask", folder / "answer"
    script.write_text(ATTACH)
    for path in (ready, ask, answer):
        path.unlink(missing_ok=True)
    os.mkfifo(ask)
    os.mkfifo(answer)
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    command = (python, str(script), str(ready), str(ask), str(answer))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        try:
            start = time.monotonic()
            while not ready.exists() or not ready.read_text():
                if process.poll() is not None or time.monotonic() - start > LIMIT_SECONDS:
                    return "", "the process did not get ready"
                time.sleep(0.02)
            one_pass = f"echo go > {shlex.quote(str(ask))}; cat {shlex.quote(str(answer))} > /dev/null"
            done = run(stat(record, "-p", str(process.pid), "--", "sh", "-c", one_pass))
            if process.poll() is not None:
                return "", f"the process ended with {process.returncode}"
            if not record.exists():
                return "", f"no record: {done}"
            ask.write_text("end")
            out, err = process.communicate(timeout=60)
            flop, wrong = read(record)
            return flop, wrong or (
                "" if process.returncode == 0 and out else f"afterwards: {process.returncode} {err!r}"
            )
        finally:
            process.kill()


def repeat(name: str, once: Callable[[], Outcome], runs: int) -> bool:
    """Run `once` again and again, print what came of it; returns whether all runs were right and alike."""
    counts: Counter[str] = Counter()
    wrongs: Counter[str] = Counter()
    for number in range(runs):
        try:
            flop, wrong = once()
        except subprocess.TimeoutExpired:
            flop, wrong = "", f"no end after {LIMIT_SECONDS} s"
        if wrong:
            wrongs[wrong] += 1
        else:
            counts[flop] += 1
        if sys.stderr.isatty():
            print(f"\r{name}: {number + 1} of {runs}", end="", file=sys.stderr)
    print(f"{name}: {runs} runs, {sum(wrongs.values())} failed, {len(counts)} different counts")
    for flop, number in counts.most_common():
        print(f"  {number} x {flop or 'nothing'}")
    for wrong, number in wrongs.most_common():
        print(f"  {number} x FAILED: {wrong}")
    return not wrongs and len(counts) == 1


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="*", choices=("torch", "attach", "cpp", []), default=[])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--python", default=os.environ.get("FLOPWATCH_TORCH_PYTHON", sys.executable))
    arguments = parser.parse_args()
    what = arguments.what or ["torch", "attach", "cpp"]
    held = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "torch" in what:
            script = folder / "torch_script.py"
            script.write_text(TORCH)
            held &= repeat("torch", lambda: spawned((arguments.python, str(script)), folder), arguments.runs)
        if "attach" in what:
            held &= repeat("attach", lambda: attached(arguments.python, folder), arguments.runs)
        if "cpp" in what:
            program = folder / "cpp_exceptions"
            source = str(TARGETS / "cpp_exceptions.cpp")
            subprocess.run(("g++", "-O2", "-mavx2", "-mfma", source, "-o", str(program)), check=True)
            held &= repeat("cpp", lambda: spawned((str(program),), folder), arguments.runs)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
