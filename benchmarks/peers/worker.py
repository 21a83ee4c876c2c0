"""Runs in the environment of one counter: `python -m peers.worker COUNTER CASE...` prints an answer to each case, one a line."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

from peers import attention_cases, op_cases  # noqa: F401  # they register theirs
from peers.adapters import NotForThisError
from peers.answers import Answer
from peers.cases import CASES

MARK = "@@answer "
LIMIT_SECONDS = 240
NOT_FOR_THIS = "not for this counter"


def answer(adapter: Any, name: str, version: str) -> Answer:
    """Ask a counter about one case."""
    case = CASES[name]
    random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    begin = time.perf_counter()
    try:
        prepared = adapter.prepare(case)
        begin = time.perf_counter()
        count = adapter.count(case, prepared)
    except NotForThisError:
        return Answer(name, error=NOT_FOR_THIS, version=version)
    except (Exception, SystemExit) as error:
        first = str(error).strip().partition("\n")[0]
        return Answer(
            name, error=f"{type(error).__name__}: {first}"[:300], version=version, seconds=time.perf_counter() - begin
        )
    return Answer(name, count, seconds=time.perf_counter() - begin, version=version)


def _warm_up(adapter: Any) -> None:
    """Let a counter import what it needs, outside of the time that is measured."""
    with (
        contextlib.suppress(Exception, SystemExit),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        answer(adapter, "conv2d", "")


def _late(*_: object) -> None:
    raise TimeoutError(f"no answer after {LIMIT_SECONDS} s")


def main(arguments: Sequence[str]) -> int:
    """Answer each case, with all that a counter prints left out."""
    counter, *names = arguments
    out = os.fdopen(os.dup(1), "w")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, _late)
    adapter = import_module(f"peers.adapters.{counter}")
    version = ""
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
        version = metadata.version(adapter.VERSION_OF)
    _warm_up(adapter)
    for name in names:
        print(f"{MARK}{json.dumps({'begun': name})}", file=out, flush=True)
        signal.alarm(LIMIT_SECONDS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = answer(adapter, name, version)
        signal.alarm(0)
        print(f"{MARK}{json.dumps(found.document())}", file=out, flush=True)
        if found.count is None and found.error != NOT_FOR_THIS:
            return 0  # whoever raised may have left PyTorch changed: the rest is for a process of its own
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
