"""Estimate: follow a model from operator to operator, give each call its worth, add it to its place, and make a record of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from flopwatch import formats
from flopwatch.attribution import Where
from flopwatch.errors import UsageError
from flopwatch.events import Op, Traced
from flopwatch.flops.classify import Free
from flopwatch.flops.classify import Unknown as NotKnown
from flopwatch.flops.formulas import Work
from flopwatch.flops.formulas import estimate as worth_of
from flopwatch.flops.formulas.work import total
from flopwatch.measuring import machine, versions
from flopwatch.record import Calls, Cell, Layer, Memory, Record, Shapes, Unknown, ops_of
from flopwatch.subjects.model import ModelSubject, Request, find
from flopwatch.subjects.model.inputs import parse_shape

Progress = Callable[[str], None]
Worth = Work | Free | NotKnown
Tracing = Callable[..., Traced]

# Layers that are named for each unknown operator.
_LAYERS = 5


def silent(text: str) -> None:
    """Progress that nobody wants to see."""


def estimate_model(
    request: Request, *, train: bool = False, convention: str = "pmu", progress: Progress = silent
) -> Record:
    """What formulas say that one inference, or with `train` one training step, needs; nothing is computed where that can be helped.

    Raises UsageError for a request that makes no sense, ModelRaisedError if the model or its factory raises.
    """
    described = formats.find(request.name)
    if described is not None:
        progress("estimating")
        return _estimate_file(request, described, train=train, convention=convention)
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
    subject: ModelSubject, *, train: bool = False, convention: str = "pmu", progress: Progress = silent
) -> Record:
    """Estimate a model that is there already; see `estimate_model`."""
    estimation = Estimation()
    trace: Tracing = import_module(f"flopwatch.frameworks.{subject.framework}.tracing").trace
    progress("estimating")
    ops: list[Op] = []
    with subject.raising():
        traced = trace(subject, ops.append, train=train)
    for op in ops:  # out here a mistake of ours is not taken for one of the model's
        estimation.see(op)
    step = "one training step (forward, loss, backward, SGD)" if train else "one inference"
    record = _record(
        estimation,
        traced,
        (subject.name, subject.source, subject.dtype, "training" if train else "inference"),
        (f"{step} on {subject.source}, {subject.dtype}, estimated {traced.how}", *subject.notes, *traced.notes),
        convention,
    )
    return with_notes(record, per_token(record, subject.tokens)) if subject.tokens else record


def _estimate_file(request: Request, trace: Tracing, *, train: bool, convention: str) -> Record:
    """Estimate what a file of a model describes; nothing of it is loaded into a framework."""
    path = Path(request.name)
    if not path.is_file():
        raise UsageError(f"There is no file {request.name!r}.")
    if train:
        raise UsageError(f"{request.name} describes an inference, not its training.", todo="Leave --train out.")
    if request.image is not None or request.dtype is not None:
        raise UsageError(
            f"{request.name} is not run and says itself what it computes on.", todo="Leave --image and --dtype out."
        )
    estimation = Estimation()
    shapes = _shapes_of(request)
    traced = trace(path, estimation.see, batch=request.batch, shapes=shapes, dims=request.dims)
    source = ", ".join(request.shapes) or "the inputs that it declares"
    notes = (f"one inference on {source}, estimated {traced.how}", *traced.notes)
    return _record(estimation, traced, (request.name, source, "", "inference"), notes, convention)


def _shapes_of(request: Request) -> tuple[tuple[int, ...], ...] | dict[str, tuple[int, ...]]:
    """The shapes that were asked for, by input if they were given as NAME=SHAPE."""
    named = [text.rpartition("=") for text in request.shapes]
    if not any(name for name, _, _ in named):
        return tuple(parse_shape(text).sizes for _, _, text in named)
    if not all(name for name, _, _ in named):
        raise UsageError("Some inputs are named, others are not.", todo="Write --input NAME=SHAPE for each of them.")
    return {name: parse_shape(text).sizes for name, _, text in named}


def _record(
    estimation: Estimation, traced: Traced, what: tuple[str, str, str, str], notes: tuple[str, ...], convention: str
) -> Record:
    return Record(
        counter="estimate",
        command=what,
        subject="model",
        convention=convention,
        notes=notes,
        unknown=estimation.unknown,
        machine=machine(),
        versions=versions(),
        layers=tuple(Layer(*part) for part in traced.parts),
        calls=estimation.calls,
        memory=Memory(traced.activations, traced.at, traced.parameters, traced.buffers) if traced.activations else None,
        cells=estimation.cells,
    )


def per_token(record: Record, tokens: int) -> str:
    """What a record comes to for each of so many tokens, in words: MAC and FLOP."""
    flop = sum(record.flop().values())
    return f"per token: {_quotient(record.mac, tokens)} MAC, {_quotient(flop, tokens)} FLOP (of {tokens:,} in all)"


def with_notes(record: Record, *notes: str) -> Record:
    """The same record with more notes."""
    return replace(record, notes=(*record.notes, *notes))


def _quotient(whole: int, parts: int) -> str:
    return f"{whole // parts:,}" if whole % parts == 0 else f"{whole / parts:,.1f}"


@dataclass(slots=True)
class _Place:
    works: list[Work] = field(default_factory=list)
    shapes: dict[Shapes, int] = field(default_factory=dict)
    calls: int = 0
    read: int = 0
    written: int = 0


class Estimation:
    """Takes operator calls one by one, in `see`; the other members tell what they amount to."""

    def __init__(self) -> None:
        self._places: dict[Where, _Place] = {}
        self._unknown: dict[str, int] = {}
        self._layers: dict[str, dict[str, None]] = {}
        self._counted = self._free = self._bytes = self._unknown_bytes = 0
        # Calls that share these very objects are alike; holding them keeps their numbers theirs.
        self._alike: dict[tuple[str, int, int], tuple[Op, Worth, int, int]] = {}

    def _worth(self, op: Op) -> tuple[Worth, int, int]:
        key = (op.name, id(op.arguments), id(op.outputs))
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = (op, _tried(op), op.read, op.written)
        return found[1:]

    def see(self, op: Op) -> None:
        """Add one call, or several that are alike; views, which move and compute nothing, may be left out or not."""
        found, read, written = self._worth(op)
        scope = op.scope
        where = Where(layer=scope.layer, op=scope.op, function=scope.function)
        place = self._places.get(where)
        if place is None:
            place = self._places[where] = _Place()
        if op.times != 1:
            read, written = op.times * read, op.times * written
        place.calls += op.times
        self._bytes += read + written
        if isinstance(found, Free):
            self._free += op.times
            if found.moves:
                place.read += read
                place.written += written
            return
        place.read += read
        place.written += written
        if isinstance(found, Work):
            self._counted += op.times
            if found.tally:
                place.works.append(found if op.times == 1 else found * op.times)
                shapes = _shapes(op, found)
                place.shapes[shapes] = place.shapes.get(shapes, 0) + op.times
            return
        self._unknown[found.name] = self._unknown.get(found.name, 0) + op.times
        self._unknown_bytes += read + written
        shapes = _shapes(op)
        place.shapes[shapes] = place.shapes.get(shapes, 0) + op.times
        layers = self._layers.setdefault(found.name, {})
        if len(layers) < _LAYERS:
            layers[scope.layer] = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """What was seen, by place."""
        return tuple(_cell(where, place) for where, place in sorted(self._places.items()))

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Operators without a formula, most calls first."""
        ordered = sorted(self._unknown.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Unknown(name, count, tuple(self._layers[name])) for name, count in ordered)

    @property
    def calls(self) -> Calls:
        """How many calls were counted, free and unknown."""
        unknown = sum(self._unknown.values())
        return Calls(self._counted, self._free, unknown, self._bytes, self._unknown_bytes)


def _tried(op: Op) -> Worth:
    """What a call is worth; unknown where a formula meets arguments that it was not made for (an overload on plain numbers)."""
    try:
        return worth_of(op)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError):
        return NotKnown(op.name)


def _shapes(op: Op, work: Work | None = None) -> Shapes:
    """One call, without how often it was made."""
    return Shapes(
        op.name,
        1,
        tuple(array.shape for array in op.arrays),
        tuple(array.shape for array in op.outputs if array is not None),
        mac=work.mac if work else 0,
        padding=work.avoidable.get("padding", 0) if work else 0,
    )


def _cell(where: Where, place: _Place) -> Cell:
    work = total(place.works)
    return Cell(
        ops_of(work.tally),
        *where,
        calls=place.calls,
        mac=work.mac,
        padding=work.avoidable.get("padding", 0),
        causal=work.avoidable.get("causal", 0),
        read=place.read,
        written=place.written,
        shapes=tuple(replace(each, calls=calls) for each, calls in place.shapes.items()),
    )
