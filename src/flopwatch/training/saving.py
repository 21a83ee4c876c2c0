"""When a run is saved, what of it, and how it is taken up again."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flopwatch.errors import UsageError
from flopwatch.training import checkpoints
from flopwatch.training.clock import Lap
from flopwatch.training.loop import Position
from flopwatch.training.rows import Row, fingerprint

if TYPE_CHECKING:
    from flopwatch.training.session import Place, Session


class Saver:
    """Saves a session into the folder of its place, if it has one."""

    def __init__(self, session: Session, place: Place) -> None:
        self._session, self._place = session, place
        self._saved = time.monotonic()
        self._fingerprint = fingerprint(session.data)

    def due(self, done: int) -> bool:
        """Whether to save in mid epoch, after so many batches."""
        if self._place.output is None:
            return False
        by_steps = self._place.save_steps > 0 and done % self._place.save_steps == 0
        return by_steps or time.monotonic() - self._saved >= self._place.save_seconds

    def between(self, done: int) -> None:
        """Save in mid epoch, if it is time."""
        if self.due(done) and self._place.output is not None:
            self._save(self._place.output)

    def after_epoch(self, row: Row) -> None:
        """Save at the end of an epoch, with the weights apart if they are the best so far."""
        session = self._session
        better = row["top1"] is not None and (session.best is None or row["top1"] > session.best["top1"])
        if better:
            session.best = session.document["best"] = {"epoch": row["epoch"], "top1": row["top1"]}
        if self._place.output is None:
            return
        if better:
            weights = {
                "arch": session.job.arch,
                "best": session.best,
                "state_dict": session.running.module.state_dict(),
            }
            checkpoints.save(weights, self._place.output / checkpoints.BEST)
        self._save(self._place.output)

    def _save(self, folder: Path) -> None:
        session = self._session
        state = {
            "job": session.job.as_json(),
            "fingerprint": self._fingerprint,
            "position": asdict(session.loop.position),
            "lap": session.loop.lap.as_state(),
            "meter": session.loop.meter.as_state(),
            "running": session.running.state_dict(),
            "random": checkpoints.random_states(),
            "rows": session.rows,
            "best": session.best,
        }
        checkpoints.save(state, folder / checkpoints.NAME)
        self._saved = time.monotonic()

    def resume(self, state: dict[str, Any]) -> None:
        """Put the session to where a checkpoint's `state` was saved; raises UsageError if it has other pictures."""
        session = self._session
        if state["fingerprint"] != self._fingerprint:
            raise UsageError(
                f"The checkpoint was made on other pictures than those of {session.job.data}.",
                todo="Give the same data, or start a new run without --resume.",
            )
        session.running.load_state_dict(state["running"])
        session.loop.position = Position(**state["position"])
        session.loop.lap = Lap.from_state(state["lap"])
        session.loop.meter.load_state(state["meter"])
        session.rows += state["rows"]
        session.best = state["best"]
        checkpoints.restore_random(state["random"])
