"""Measure a model: build it, warm it up, count one step of it by layer, operator and function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from flopwatch.attribution import Where
from flopwatch.counters import Needs
from flopwatch.errors import UsageError
from flopwatch.estimating import Estimation
from flopwatch.flops.classify import Classified
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import OUTSIDE, Traced
from flopwatch.labelled import Counting, Engine
from flopwatch.measuring import events_of, machine, versions
from flopwatch.record import Layer, Memory, Record, Unknown, cells_of
from flopwatch.scope import Scope
from flopwatch.subjects.model import ModelSubject, Request, find

Progress = Callable[[str], None]
Tracing = Callable[..., Traced]
Steps = Callable[..., AbstractContextManager[Callable[[], None]]]


def _silent(text: str) -> None:
    pass


def measure_model(
    request: Request,
    *,
    train: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    counter: str = "instrumented",
    engine: Engine | None = None,
    progress: Progress = _silent,
) -> Record:
    """Count one inference, or with `train` one training step, after an uncounted one that does all one-off work.

    Raises UsageError for a request that makes no sense, ModelRaisedError if the model or its factory raises,
    CannotMeasureError where nothing can be counted.
    """
    counting = Counting(engine, counter, Needs("", convention, lanes))
    progress(f"building {request.name}")
    return measure_subject(find(request), counting, train=train, convention=convention, lanes=lanes, progress=progress)


def compare_model(
    request: Request,
    *,
    train: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    counter: str = "instrumented",
    engine: Engine | None = None,
    progress: Progress = _silent,
) -> Record:
    """Measure a model and estimate it: the measured record, with the estimate in it. Raises as `measure_model` does."""
    counting = Counting(engine, counter, Needs("", convention, lanes))
    progress(f"building {request.name}")
    subject = find(request)
    estimate = estimate_subject(subject, train=train, convention=convention, progress=progress)
    measured = measure_subject(subject, counting, train=train, convention=convention, lanes=lanes, progress=progress)
    return replace(measured, estimate=estimate)


def measure_subject(
    subject: ModelSubject,
    counting: Counting,
    *,
    train: bool = False,
    convention: str = "pmu",
    lanes: str | None = None,
    progress: Progress = _silent,
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


def estimate_model(
    request: Request, *, train: bool = False, convention: str = "pmu", progress: Progress = _silent
) -> Record:
    """What formulas say that one inference, or with `train` one training step, needs; nothing is computed where that can be helped.

    Raises UsageError for a request that makes no sense, ModelRaisedError if the model or its factory raises.
    """
    progress(f"building {request.name}")
    return estimate_subject(find(request, empty=True), train=train, convention=convention, progress=progress)


def estimate(subject: Any, /, *args: Any, train: bool = False, convention: str = "pmu", **kwargs: Any) -> Record:
    """What formulas say that one call needs, forward, or with `train` one training step; nothing is computed where that can be helped.

    `subject` is a PyTorch module, also a compiled, scripted or exported one, or any function that uses PyTorch, called with
    `args` and `kwargs` (`train` and `convention` are not for it); or the name of a model, or a Request, which bring their own
    input. A function's own work is "(outside any module)". A module is put into training or inference mode for the call and is
    as it was afterwards; a function is called as it is. Raises UsageError, with the model's own words, if it refuses its input.
    """
    if isinstance(subject, (str, Request)):
        if args or kwargs:
            raise UsageError(
                "A model that is asked for by name brings its own input.",
                todo="Give shapes with flopwatch.Request(...).",
            )
        request = Request(subject) if isinstance(subject, str) else subject
        return estimate_model(request, train=train, convention=convention)
    found = subject
    if not isinstance(subject, ModelSubject):
        programs = import_module("flopwatch.frameworks.torch.tracing.programs")
        found = programs.subject_of(subject, args, kwargs)
    return estimate_subject(found, train=train, convention=convention)


def estimate_subject(
    subject: ModelSubject, *, train: bool = False, convention: str = "pmu", progress: Progress = _silent
) -> Record:
    """Estimate a model that is there already; see `estimate_model`."""
    estimation = Estimation()
    trace: Tracing = import_module(f"flopwatch.frameworks.{subject.framework}.tracing").trace
    progress("estimating")
    with subject.raising():
        traced = trace(subject, estimation.see, train=train)
    what = "one training step (forward, loss, backward, SGD)" if train else "one inference"
    estimated = Record(
        counter="estimate",
        command=(subject.name, subject.source, subject.dtype, "training" if train else "inference"),
        subject="model",
        convention=convention,
        notes=(
            f"{what} on {subject.source}, {subject.dtype}, estimated {traced.how}",
            *subject.notes,
            *traced.notes,
        ),
        unknown=estimation.unknown,
        machine=machine(),
        versions=versions(),
        layers=tuple(Layer(*part) for part in traced.parts),
        calls=estimation.calls,
        memory=Memory(traced.activations, traced.at, traced.parameters, traced.buffers) if traced.activations else None,
        cells=estimation.cells,
    )
    return with_notes(estimated, per_token(estimated, subject.tokens)) if subject.tokens else estimated


def per_token(record: Record, tokens: int) -> str:
    """What a record comes to for each of so many tokens, in words: MAC and FLOP."""
    flop = sum(record.flop().values())
    return f"per token: {_quotient(record.mac, tokens)} MAC, {_quotient(flop, tokens)} FLOP (of {tokens:,} in all)"


def with_notes(record: Record, *notes: str) -> Record:
    """The same record with more notes."""
    return replace(record, notes=(*record.notes, *notes))


def _quotient(whole: int, parts: int) -> str:
    return f"{whole // parts:,}" if whole % parts == 0 else f"{whole / parts:,.1f}"
