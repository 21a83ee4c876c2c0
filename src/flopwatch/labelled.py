"""Count in this process: run something while its scopes are kept, and get the work of each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from types import TracebackType
from typing import Protocol, Self, cast

from flopwatch import counters
from flopwatch.counters import ANYTHING, KindReadings, LabelledReadings, Needs, Region, Thread
from flopwatch.events import Block
from flopwatch.flops.classify import Classified, classify_block
from flopwatch.flops.readings import classify_readings
from flopwatch.scope import Scope, Scopes

ISA = "x86_64"


class LabelledBlock(Protocol):
    """A block and how often it ran while its work was settled to `label`; the rest as in `events.Block`."""

    label: int
    thread: str
    address: int
    code: bytes
    runs: int
    active: tuple[tuple[int, int], ...]


class Engine(Protocol):
    """A counter that follows the threads of its own process, from `start` to `stop`; `reasons` say what it has lost."""

    reasons: list[str]

    def open(self) -> None: ...
    def attach_threads(self) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def settle(self, label: int) -> None: ...
    def read(self) -> Sequence[LabelledBlock | LabelledReadings]: ...
    def regions(self) -> Sequence[Region]: ...
    def threads(self) -> Sequence[Thread]: ...


class Counting:
    """Counts during a with block; `scopes` is to be kept up to date by hooks, `work` has the result afterwards.

    The engine is the one given, or that of the counter of a name; `counter` is the name of the counter that it belongs to.
    """

    def __init__(self, engine: Engine | None = None, counter: str = "instrumented", needs: Needs = ANYTHING) -> None:
        if engine is None:
            counter, engine = engine_of(counter, needs)
        self.counter: str = getattr(engine, "counter", counter)
        self._engine = engine
        self.scopes = Scopes(self._engine.settle)
        self.work: dict[int, Classified] = {}
        self.blocks: tuple[LabelledBlock, ...] = ()
        self.readings: tuple[LabelledReadings, ...] = ()
        self._seen: tuple[str, ...] = ()

    @property
    def partial(self) -> tuple[str, ...]:
        """What was not counted; empty if everything was."""
        return (*self._engine.reasons, *self._seen)

    @property
    def notes(self) -> tuple[str, ...]:
        """What belongs to the figures of this counter on this machine."""
        return tuple(getattr(self._engine, "facts", ()))

    @property
    def regions(self) -> Sequence[Region]:
        """Where code was mapped."""
        return self._engine.regions()

    @property
    def thread_names(self) -> dict[str, str]:
        """Names of threads by their numbers."""
        return {str(thread.tid): f"{thread.tid} {thread.name}".strip() for thread in self._engine.threads()}

    def __enter__(self) -> Self:
        self._engine.open()
        self._engine.attach_threads()
        self._engine.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.scopes.close()
        finally:
            self._engine.stop()
        parts: dict[int, list[Classified]] = {}
        found = self._engine.read()
        self.readings = tuple(each for each in found if isinstance(each, LabelledReadings))
        self.blocks = tuple(each for each in found if not isinstance(each, LabelledReadings))
        for each in self.readings:
            parts.setdefault(each.label, []).append(self._weighed(each.readings))
        for block in self.blocks:
            seen = Block(Scope(), ISA, block.address, block.code, block.runs, block.active)
            parts.setdefault(block.label, []).append(classify_block(seen))
        self.work = {label: Classified.total(of_label) for label, of_label in parts.items()}

    def _weighed(self, kind: KindReadings) -> Classified:
        found = classify_readings(kind.readings, kind.table, vector_bits=kind.vector_bits)
        self._seen = tuple(dict.fromkeys((*self._seen, *found.partial)))
        return Classified(found.tally, 0, found.unknown)


def engine_of(counter: str, needs: Needs = ANYTHING) -> tuple[str, Engine]:
    """The name of the counter that was found, and an engine of it; raises as `counters.find` does."""
    found = counters.find(counter, replace(needs, once=True))
    if found.name == "hardware":
        return found.name, cast(Engine, import_module("flopwatch.counters.hardware").COUNTER.engine(needs))
    return found.name, cast(Engine, import_module(f"flopwatch.counters.{found.name}.inprocess").Engine())
