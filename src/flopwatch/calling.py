"""Count what this process executes: a with block with spans, or one call of a function."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from flopwatch.attribution import Row, fold, fold_readings, merged
from flopwatch.counters import KindReadings, LabelledReadings, Needs
from flopwatch.errors import UsageError
from flopwatch.events import Block
from flopwatch.flops.operations import DType
from flopwatch.labelled import Counting, Engine
from flopwatch.measuring import events_of, machine, versions
from flopwatch.record import Record, Unknown, cells_of
from flopwatch.scope import Scope
from flopwatch.symbols import Symbols, read_jit_map

Result = TypeVar("Result")
SEPARATOR = " / "


class Count:
    """What all threads of this process execute during a with block; made by `count`.

    Afterwards `record` has everything, and `flop`, `op`, `total` and `rows(axis)` the figures most asked for.
    """

    def __init__(
        self, model: object, convention: str, lanes: str | None, engine: Engine | None, counter: str = "instrumented"
    ) -> None:
        self._model = model
        self._convention, self._lanes = convention, lanes
        self._engine, self._counter = engine, counter
        self._counting: Counting | None = None
        self._hooks: AbstractContextManager[Any] = nullcontext()
        self._record: Record | None = None
        self._spans = threading.local()

    def __enter__(self) -> Self:
        if self._counting is not None:
            raise UsageError("This count was used already.", todo="Make a new one with flopwatch.count().")
        self._since = time.time()
        self._counting = Counting(self._engine, self._counter, Needs("", self._convention, self._lanes))
        self._hooks = _hooks(self._model, self._counting)
        self._counting.__enter__()
        self._hooks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._counting is not None
        try:
            self._hooks.__exit__(kind, error, trace)
        finally:
            self._counting.__exit__(kind, error, trace)
            self._record = self._made(self._counting)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """What the with block executes becomes a row of the axis "span"; spans nest, and their names are joined."""
        if self._counting is None or self._record is not None:
            raise UsageError("A span lies inside its count.", todo="Open it within `with flopwatch.count() as c:`.")
        scopes = self._counting.scopes
        outer = scopes.current
        path = f"{outer.span}{SEPARATOR}{name}" if outer.span else name
        with scopes.enter(Scope(layer=outer.layer, op=outer.op, function=outer.function, span=path)):
            yield

    @property
    def record(self) -> Record:
        """The finished record; raises UsageError before the with block has ended."""
        if self._record is None:
            raise UsageError("The count has not ended yet.", todo="Read it behind the with block.")
        return self._record

    @property
    def flop(self) -> dict[DType, int]:
        """FLOP by datatype."""
        return self.record.flop()

    @property
    def op(self) -> dict[DType, int]:
        """Integer OP by datatype."""
        return self.record.op()

    @property
    def total(self) -> int:
        """FLOP of all datatypes together."""
        return sum(self.flop.values())

    def rows(self, axis: str = "span") -> tuple[Row, ...]:
        """The rows of an axis: span, layer, op, function, thread, library, symbol or instruction; they sum to the total."""
        return self.record.rows(axis)

    def _made(self, counting: Counting) -> Record:
        symbols = Symbols(counting.regions, read_jit_map(os.getpid(), self._since))
        blocks = (
            Block(
                _with_thread(counting.scopes.scope(each.label), each.thread),
                "x86_64",
                each.address,
                each.code,
                each.runs,
                each.active,
            )
            for each in counting.blocks
        )
        names = counting.thread_names
        readings = [_in_scope(each, counting.scopes.scope(each.label)) for each in counting.readings]
        folded = merged((fold(blocks, symbols.resolve, threads=names), fold_readings(readings, threads=names)))
        unknown = sorted(folded.unknown.items(), key=lambda item: (-item[1], item[0]))
        return Record(
            counter=counting.counter,
            command=tuple(sys.argv),
            subject="call",
            convention=self._convention,
            lanes=self._lanes,
            complete=not counting.partial,
            partial=counting.partial,
            notes=(*getattr(self._hooks, "notes", ()), *counting.notes),
            unknown=tuple(Unknown(name, runs) for name, runs in unknown),
            events=events_of(readings),
            vector_instructions=folded.vector_instructions,
            machine=machine(),
            versions=versions(),
            cells=cells_of(folded.cells),
        )


@dataclass(frozen=True, slots=True)
class Measured(Generic[Result]):
    """What a function returned when it was counted, and the record; `record.seconds` is the time of an uncounted call."""

    result: Result
    record: Record

    @property
    def flop(self) -> dict[DType, int]:
        """FLOP by datatype."""
        return self.record.flop()

    @property
    def total(self) -> int:
        """FLOP of all datatypes together."""
        return sum(self.flop.values())


def count(
    model: object = None,
    *,
    convention: str = "pmu",
    lanes: str | None = None,
    counter: str = "instrumented",
    engine: Engine | None = None,
) -> Count:
    """Count all that this process executes during a with block, by span, thread, library, symbol and instruction.

    `model` (a torch.nn.Module or a chainer.Chain) adds rows by layer, op and function. Works in a notebook and in
    scripts that have loaded their frameworks already; threads that exist are followed from here on. With `counter`
    "hardware" it costs next to nothing, and there are no rows by library, symbol or instruction; "auto" takes it where it
    tells datatypes apart. Raises UsageError
    if counting is under way already, CannotMeasureError where it is not possible.
    """
    return Count(model, convention, lanes, engine, counter)


def measure(
    function: Callable[[], Result],
    *,
    warm_up: int = 1,
    timed: int = 3,
    convention: str = "pmu",
    lanes: str | None = None,
    counter: str = "instrumented",
    engine: Engine | None = None,
) -> Measured[Result]:
    """Call a function `warm_up` times, then `timed` times for its wall time, then once more under the counter.

    The time is the median in seconds, uninstrumented. Raises what the function raises, and as `count` does.
    """
    for _ in range(warm_up):
        function()
    seconds = []
    for _ in range(timed):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    with count(convention=convention, lanes=lanes, counter=counter, engine=engine) as counted:
        result = function()
    record = msgspec.structs.replace(
        counted.record, seconds=statistics.median(seconds) if seconds else None, timed_seconds=tuple(seconds)
    )
    return Measured(result, record)


def _with_thread(scope: Scope, thread: str) -> Scope:
    return Scope(thread=thread, layer=scope.layer, op=scope.op, function=scope.function, span=scope.span)


def _in_scope(each: LabelledReadings, scope: Scope) -> KindReadings:
    place = _with_thread(scope, each.thread)
    readings = tuple(replace(reading, scope=place) for reading in each.readings.readings)
    return replace(each.readings, readings=readings)


def _hooks(model: object, counting: Counting) -> AbstractContextManager[Any]:
    if model is None:
        return nullcontext()
    torch, chainer = sys.modules.get("torch"), sys.modules.get("chainer")
    if torch is not None and isinstance(model, torch.nn.Module):
        made: AbstractContextManager[Any] = import_module("flopwatch.frameworks.torch").TorchHooks(
            model, counting.scopes
        )
        return made
    if chainer is not None and isinstance(model, chainer.Link):
        made = import_module("flopwatch.frameworks.chainer").ChainerHooks(counting.scopes, model)
        return made
    raise UsageError(
        "This model's layers cannot be told apart.",
        seen=f"It is a {type(model).__module__}.{type(model).__qualname__}.",
        todo="Give a torch.nn.Module or a chainer.Chain, or leave it out.",
    )
