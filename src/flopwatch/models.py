"""Measure a model: build it, warm it up, count one step of it by layer, operator and function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from flopwatch import formats
from flopwatch.attribution import Where
from flopwatch.counters import Needs
from flopwatch.errors import CannotMeasureError
from flopwatch.estimating import Progress, estimate_subject, silent
from flopwatch.flops.classify import Classified
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import OUTSIDE
from flopwatch.labelled import Counting, Engine
from flopwatch.measuring import events_of, machine, versions
from flopwatch.record import Layer, Record, Unknown, cells_of
from flopwatch.scope import Scope
from flopwatch.subjects.model import ModelSubject, Request, find

Steps = Callable[..., AbstractContextManager[Callable[[], None]]]


def measure_model(
    request: Request,
    *,
    train: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    counter: str = "instrumented",
    engine: Engine | None = None,
    estimated: bool = False,
    progress: Progress = silent,
) -> Record:
    """Count one inference, or with `train` one training step, after an uncounted one that does all one-off work.

    `estimated` puts an estimate of the same step beside it, into the record.
    Raises UsageError for a request that makes no sense, ModelRaisedError if the model or its factory raises,
    CannotMeasureError where nothing can be counted.
    """
    if formats.find(request.name) is not None:
        raise CannotMeasureError(
            f"{request.name} describes a network and cannot be run here.",
            todo="Leave --measure out, or measure a program that runs it: flopwatch stat -- COMMAND.",
        )
    counting = Counting(engine, counter, Needs("", convention, lanes))
    progress(f"building {request.name}")
    subject = find(request)
    estimate = estimate_subject(subject, train=train, convention=convention, progress=progress) if estimated else None
    measured = measure_subject(subject, counting, train=train, convention=convention, lanes=lanes, progress=progress)
    return replace(measured, estimate=estimate)


def measure_subject(
    subject: ModelSubject,
    counting: Counting,
    *,
    train: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    progress: Progress = silent,
) -> Record:
    """Count one step of a model that is there already; see `measure_model`."""
    running: Steps = import_module(f"flopwatch.frameworks.{subject.framework}.running").steps
    with running(subject, train=train) as step:
        progress("warming up")
        with subject.raising():
            step()
        hooks = _hooks(subject, counting)
        progress("counting")
        with counting, hooks, subject.raising():
            step()
    return _record(subject, counting, hooks, train=train, convention=convention, lanes=lanes)


def _hooks(subject: ModelSubject, counting: Counting) -> Any:
    if subject.framework == "torch":
        from flopwatch.frameworks.torch import TorchHooks

        return TorchHooks(subject.model, counting.scopes)
    from flopwatch.frameworks.chainer import ChainerHooks

    return ChainerHooks(counting.scopes, subject.model)


def _record(
    subject: ModelSubject, counting: Counting, hooks: Any, *, train: bool, convention: str, lanes: str | None
) -> Record:
    work = counting.work
    everything = Classified.total(work.values())
    what = "one training step (forward, loss, backward, SGD)" if train else "one inference"
    return Record(
        counter=counting.counter,
        command=(subject.name, subject.source, subject.dtype, "training" if train else "inference"),
        subject="model",
        convention=convention,
        lanes=lanes,
        complete=not counting.partial,
        partial=counting.partial,
        notes=(
            f"{what} on {subject.source}, {subject.dtype}, after one that was not counted",
            *subject.notes,
            *hooks.notes,
            *counting.notes,
        ),
        unknown=_unknown(everything),
        events=events_of(each.readings for each in counting.readings),
        vector_instructions=everything.vector_instructions,
        machine=machine(),
        versions=versions(),
        layers=tuple(Layer(*part) for part in hooks.parts),
        cells=cells_of(_places(work, counting.scopes.scope)),
    )


def _places(work: dict[int, Classified], scope_of: Callable[[int], Scope]) -> dict[Where, Tally]:
    places: dict[Where, list[Tally]] = {}
    for label, each in work.items():
        if each.tally:
            scope = scope_of(label)
            # Before the hooks came and after they went: a handful of instructions of ours.
            where = Where(layer=scope.layer or OUTSIDE, op=scope.op, function=scope.function)
            places.setdefault(where, []).append(each.tally)
    return {where: Tally.total(tallies) for where, tallies in places.items()}


def _unknown(everything: Classified) -> tuple[Unknown, ...]:
    ordered: Sequence[tuple[str, int]] = sorted(everything.unknown.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Unknown(name, count) for name, count in ordered)
