"""Attach to one process full of libraries over and over, and see that every count is the same and the process unharmed.

    python benchmarks/soak_attach.py 100 /path/to/python-with-torch

Prints one line for each ten attachments and exits with 1 at the first failure.
"""

from __future__ import annotations

import subprocess
import sys
import time

from flopwatch.counters.instrumented import attaching
from flopwatch.flops import classify_block

PROGRAM = """
import sys, threading, torch
for name in ("numpy", "scipy.linalg", "sklearn", "torchvision", "PIL.Image", "pandas", "sqlite3", "ssl", "asyncio"):
    try:
        __import__(name)
    except ImportError:
        pass
torch.manual_seed(0)
torch.set_num_threads(2)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
x = torch.randn(4, 3, 32, 32)
first = network(x)
busy = threading.Event()
ticks = 0

def tick():
    global ticks
    while True:
        ticks += 1
        busy.wait(0.001)

threading.Thread(target=tick, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    network.zero_grad()
    y = network(x)
    y.sum().backward()
    assert torch.equal(y, first)
    print("done", flush=True)
print("end", flush=True)
"""


def main(rounds: int, python: str) -> int:
    process = subprocess.Popen([python, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"

    def during() -> bool:
        assert process.stdin and process.stdout
        try:
            process.stdin.write("once more\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer != "done\n":
            raise SystemExit(f"the program failed: {process.wait()}")
        return False

    seen: dict[str, int] = {}
    during()
    for index in range(1, rounds + 1):
        since = time.monotonic()
        result = attaching.run(process.pid, during)
        tally = {"fp32": 0}
        for image in result.processes:
            for block in image.blocks:
                for dtype, flop in classify_block(block).tally.flop().items():
                    tally[str(dtype)] = tally.get(str(dtype), 0) + flop
        now = {"fp32": tally["fp32"]}
        seen = seen or now
        reasons = [*result.reasons, *(reason for image in result.processes for reason in image.reasons)]
        if now != seen or reasons:
            print(f"attachment {index}: {now}, before {seen}, {reasons}")
            return 1
        during()  # natively again
        if index % 10 == 0:
            print(f"{index}: {now['fp32']:,} FLOP, {time.monotonic() - since:.2f} s", flush=True)
    process.stdin.close()
    if process.stdout.read() != "end\n" or process.wait(30) != 0:
        print("the program did not end as it should")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
