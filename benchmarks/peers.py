"""Other counters beside flopwatch on the same cases, each in an environment of its own: who is right, who is silent, how long each takes.

    python benchmarks/peers.py [--only PEER ...] [--cases TEXT ...] [--fresh] [--markdown] [--speed] [--folder DIR] [--base PYTHON]

The base is a Python with torch, torchvision, transformers and what flopwatch depends on (default: this one); environments of the
counters are made on top of it under DIR (default: build/peers, two gigabytes with TensorFlow), on the first run from a package
index. Answers are kept there too, and a run that was broken off is taken up again; flopwatch is asked anew each time. Ends with
exit code 1 if flopwatch is not right everywhere, or misses a limit of --speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers import attention_cases, op_cases, speed, tables  # noqa: F401
from peers.answers import Answer
from peers.cases import CASES
from peers.environments import PEERS, Environments
from peers.running import Kept, ask

FOLDER = Path(__file__).parent.parent / "build" / "peers"


def main(arguments: Sequence[str]) -> int:
    """The command."""
    options = _parsed(arguments)
    if options.speed:
        return speed.main(options.base, options.folder)
    names = [name for name in CASES if not options.cases or any(text.lower() in name.lower() for text in options.cases)]
    environments = Environments(options.folder, options.base)
    answers: dict[str, dict[str, Answer]] = {}
    for peer in options.only or PEERS:
        kept = Kept(options.folder / "answers", peer)
        again = options.fresh or peer == "flopwatch"
        missing = [name for name in names if again or name not in kept.answers]
        try:
            for number, answer in enumerate(ask(peer, missing, environments), 1):
                _progress(f"{PEERS[peer].title}: {number} of {len(missing)}")
                kept.keep(answer)
        except subprocess.CalledProcessError as error:
            words = str(error.stderr).strip().splitlines()
            print(f"{PEERS[peer].title} cannot be installed: {words[-1] if words else error}", file=sys.stderr)
            continue
        _progress("")
        answers[peer] = {name: kept.answers[name] for name in names}
    others = _others(options.folder, names)
    print(tables.summary(answers, names, others))
    print()
    print(tables.by_case(answers, names, others))
    return tables.exit_code(answers, names, others)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


def _others(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """How many operations a case does beside its products, as flopwatch says, so that those who add them can be told from the wrong."""
    kept = Kept(folder / "answers", "flopwatch").answers
    counts = {name: kept[name].count for name in names if name in kept}
    return {name: count.others or 0 for name, count in counts.items() if count is not None}


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=tuple(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--cases", nargs="+", metavar="TEXT", help="cases with this in their names")
    parser.add_argument("--fresh", action="store_true", help="ask again what was answered before")
    parser.add_argument("--speed", action="store_true", help="only compare how long estimates take")
    parser.add_argument("--folder", type=Path, default=FOLDER, metavar="DIR")
    parser.add_argument("--base", default=sys.executable, metavar="PYTHON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
