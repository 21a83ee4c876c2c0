"""How long estimates take: ResNet-50 by three counters in turns, and the config of a model of 405 billion parameters."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers.environments import PEERS, Environments, variables
from peers.timing import COUNTERS

ROUNDS, REPEATS = 4, 5
FASTER_THAN_FVCORE, NO_SLOWER_THAN_META = 3.0, 1.0
LARGE_SECONDS, LARGE_BYTES = 10.0, 2_000_000_000
SEQUENCE = 8192

# The sizes that Llama 3.1 405B was published with.
LLAMA_405B = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "dtype": "bfloat16",
}


def main(base: str, folder: Path) -> int:
    """Measure, print a table, and tell by the exit code whether all limits are held."""
    seconds = resnet50(Environments(folder, base))
    ours = seconds["flopwatch"]
    large, busy, resident = llama(base)
    print("| estimate of ResNet-50 | median seconds | flopwatch's time goes into it | limit |")
    print("| --- | ---: | ---: | --- |")
    print(f"| flopwatch | {ours:.4f} | 1.0 | |")
    held = []
    for peer, least in (("fvcore", FASTER_THAN_FVCORE), ("flop_counter_meta", NO_SLOWER_THAN_META)):
        ratio = seconds[peer] / ours
        held.append(ratio >= least)
        row = f"| {PEERS[peer].title} | {seconds[peer]:.4f} | {ratio:.2f} | at least {least:g}: {_word(held[-1])} |"
        print(row)
    held += [large <= LARGE_SECONDS, resident <= LARGE_BYTES]
    print()
    print(f"Llama of 405 billion parameters, {SEQUENCE:,} tokens, by its config.json, the whole process:")
    print(f"{large:.1f} s, of which {busy:.1f} s of work (limit {LARGE_SECONDS:g}: {_word(held[-2])}),")
    print(f"{resident / 1e9:.2f} GB resident at its peak (limit {LARGE_BYTES / 1e9:g}: {_word(held[-1])}).")
    return int(not all(held))


def resnet50(environments: Environments) -> dict[str, float]:
    """The median of all estimates by each counter, in processes that take turns."""
    found: dict[str, list[float]] = {counter: [] for counter in COUNTERS}
    for _ in range(ROUNDS):
        for counter, seconds in found.items():
            command = (environments.python(counter), "-m", "peers.timing", counter, str(REPEATS))
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables(counter))
            seconds += json.loads(done.stdout.splitlines()[-1])["seconds"]
    return {counter: statistics.median(seconds) for counter, seconds in found.items()}


def llama(base: str) -> tuple[float, float, int]:
    """A whole `flopwatch model`, Python's start and all: seconds, those that it was at work, bytes in memory at their peak."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(LLAMA_405B))
        command = (base, "-m", "flopwatch", "model", folder, "--sequence", str(SEQUENCE), "--strict", "--json")
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=variables("flopwatch"), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        if os.waitstatus_to_exitcode(status):
            sys.exit("flopwatch could not estimate it")
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _word(held: bool) -> str:
    return "held" if held else "missed"
