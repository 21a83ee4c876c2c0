"""Ask a counter about cases, in a process of its own; one that ends early is started again behind the case that it ended with."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers.answers import Answer
from peers.environments import Environments, variables
from peers.worker import MARK


def ask(peer: str, names: Sequence[str], environments: Environments) -> Iterator[Answer]:
    """An answer for each case, as they come."""
    python = environments.python(peer)
    left = list(names)
    while left:
        # Errors go to a file: a pipe that nobody reads from would fill up.
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            command = (python, "-m", "peers.worker", peer, *left)
            process = subprocess.Popen(
                command, env=variables(peer), stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace"
            )
            assert process.stdout is not None
            begun, answered = "", 0
            for line in process.stdout:
                if not line.startswith(MARK):
                    continue
                document = json.loads(line.removeprefix(MARK))
                begun = document.get("begun", "")
                if not begun:
                    left.remove(document["case"])
                    answered += 1
                    yield Answer.of(document)
            code = process.wait()
            if answered and code == 0:
                continue
            errors.seek(0)
            words = errors.read().strip().splitlines()
        # One that did not even begin, since it cannot be imported, will not answer anything.
        for name in [begun] if begun else list(left):
            left.remove(name)
            yield Answer(name, error=f"ended with {code}: {words[-1] if words else ''}"[:300])


class Kept:
    """Answers in a file for each counter, so that a run can be taken up again."""

    def __init__(self, folder: Path, peer: str) -> None:
        self._path = folder / f"{peer}.json"
        self.answers: dict[str, Answer] = {}
        if self._path.exists():
            self.answers = {each["case"]: Answer.of(each) for each in json.loads(self._path.read_text())}

    def keep(self, answer: Answer) -> None:
        """Add or replace an answer."""
        self.answers[answer.case] = answer
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps([each.document() for each in self.answers.values()], indent=1))
