"""The figures of an epoch and of a run, under the names that machines may rely on."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flopwatch.training import memory, probes, results
from flopwatch.training.clock import Lap
from flopwatch.training.data import DataSet
from flopwatch.training.metrics import Scores, chance, wilson
from flopwatch.training.results import Document

if TYPE_CHECKING:
    from flopwatch.training.session import Session

Row = dict[str, Any]

SLOWER = 0.9
"""A rate that fell below this share of its beginning within an epoch is mentioned."""


def trained(session: Session, epoch: int, scored: tuple[Scores, Lap] | None) -> Row:
    """The row of an epoch of training; without a validation, if the run diverged in it."""
    lap, learnt = session.loop.lap, session.loop.meter.scores()
    scores, took = scored if scored is not None else (None, None)
    telemetry = session.running.telemetry
    before = session.before
    return {
        "epoch": epoch,
        **_scored(scores),
        "train_top1": learnt.top1,
        "train_loss": learnt.loss,
        "train_n": learnt.n,
        "lr": session.loop.rate,
        "seconds": lap.seconds,
        "validation_seconds": took.seconds if took else None,
        "first_batches": asdict(lap.first) if lap.first else None,
        "steady": lap.steady,
        "images_per_second": {
            "end_to_end": lap.rate,
            "compute": before.compute.per_second if before.compute else None,
            "loader": before.loader.per_second if before.loader else None,
            "validation": took.rate if took else None,
        },
        "data_wait": lap.waited,
        "trend": lap.trend,
        "flop_per_second": session.work.rate(lap.rate, session.recipe.batch * session.recipe.accumulate),
        "mfu": None,
        "updates": telemetry.updates,
        "skipped": telemetry.skipped,
        "scale": telemetry.scale,
        "peak_memory": memory.peak(session.place.device),
    }


def evaluated(session: Session, scores: Scores, took: Lap) -> Row:
    """The row of a validation without training: epoch 0, whose seconds and images a second are those of the validation."""
    return {
        "epoch": 0,
        **_scored(scores),
        "train_loss": None,
        "seconds": took.seconds,
        "validation_seconds": took.seconds,
        "images_per_second": {"end_to_end": took.rate, "compute": None, "loader": None, "validation": took.rate},
        "data_wait": took.waited,
        "peak_memory": memory.peak(session.place.device),
    }


def _scored(scores: Scores | None) -> Row:
    interval = wilson(scores.hits1, scores.n) if scores is not None else None
    return {
        "top1": scores.top1 if scores else None,
        "top1_low": interval[0] if interval else None,
        "top1_high": interval[1] if interval else None,
        "top5": scores.top5 if scores else None,
        "n": scores.n if scores else 0,
        "loss": scores.loss if scores else None,
    }


def document(session: Session, start_up: float) -> Document:
    """Everything about a run; its rows are still to come."""
    job, device = session.job, session.place.device
    top1, top5 = chance([item.label for item in session.data.val], len(session.data.classes))
    before = session.before
    return {
        "schema": results.SCHEMA,
        "kind": "training",
        "complete": False,
        "arch": job.arch,
        "data": {**session.data.as_json(), "fingerprint": fingerprint(session.data)},
        "job": job.as_json(),
        "recipe": session.recipe.as_json(),
        "device": device,
        "head": session.head,
        "chance": {"top1": top1, "top5": top5},
        "precision": {**(before.census.as_json() if before.census else {}), **session.precision.as_json()},
        "telemetry": None,
        "work": session.work.as_json(),
        "peak_flop_per_second": None,
        "probes": {
            "compute": asdict(before.compute) if before.compute else None,
            "loader": asdict(before.loader) if before.loader else None,
        },
        "start_up_seconds": start_up,
        "memory": {"peak": None, "of": "this process, without its workers" if device == "cpu" else "the device"},
        "machine": results.surroundings(device),
        "versions": results.torch_versions(),
        "rows": session.rows,
        "best": session.best,
        "diverged": None,
        "notes": list(session.notes),
    }


def remarks(session: Session) -> list[str]:
    """What has to be said about the figures."""
    guess = session.document["chance"]
    also = f", top-5 {guess['top5']:.2%}" if guess["top5"] is not None else "; no top-5 with fewer than 5 classes"
    said = [f"guessing gives top-1 {guess['top1']:.2%}{also}; validated on {len(session.data.val)} images"]
    if session.job.evaluate or not session.rows:
        return said
    if session.before.census is not None and session.before.census.complaints:
        said.append(f"not the precision that was asked for: {'; '.join(session.before.census.complaints)}")
    last = session.rows[-1]
    rates = last["images_per_second"]
    cpus = int(session.document["machine"]["cpus"])
    said.append(probes.advice(last["data_wait"], rates["compute"], rates["loader"], session.recipe.workers, cpus))
    load = float(session.document["machine"]["load"])
    if load > 1.5 * cpus:
        said.append(
            f"the machine was busy with other work (load {load:.1f} on {cpus} cores): times are longer than they need be"
        )
    if not last["steady"]:
        said.append("an epoch is too short to leave its first batches out: images a second hold them")
    if last["trend"] is not None and last["trend"] < SLOWER:
        said.append(f"within the last epoch the rate fell to {last['trend']:.0%} of its beginning")
    if last["flop_per_second"] is not None:
        said.append(
            f"{last['flop_per_second'] / 1e9:.3g} GFLOP/s by formulas; the processor's peak is not known, so no share of "
            "it is given"
        )
    elif session.work.why or session.work.unknown:
        said.append(f"FLOP/s not known: {session.work.why or 'no formula for ' + ', '.join(session.work.unknown)}")
    return [each for each in said if each]


def fingerprint(data: DataSet) -> str:
    """What tells two lists of pictures apart: their files below the root, and labels."""
    digest = hashlib.sha256()
    for items in (data.train, data.val):
        for item in items:
            path = Path(item.path)
            name = path.relative_to(data.root) if path.is_relative_to(data.root) else path
            digest.update(f"{name}\0{item.label}\n".encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]
