"""Count in this process: run something while its scopes are kept, and get the work of each label."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import TracebackType
from typing import Protocol, Self, cast

from flopwatch import counters
from flopwatch.counters import Region, Thread
from flopwatch.events import Block
from flopwatch.flops.classify import Classified, classify_block
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
    def read(self) -> Sequence[LabelledBlock]: ...
    def regions(self) -> Sequence[Region]: ...
    def threads(self) -> Sequence[Thread]: ...


class Counting:
    """Counts during a with block; `scopes` is to be kept up to date by hooks, `work` has the result afterwards."""

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine if engine is not None else _default_engine()
        self.scopes = Scopes(self._engine.settle)
        self.work: dict[int, Classified] = {}
        self.blocks: tuple[LabelledBlock, ...] = ()

    @property
    def partial(self) -> tuple[str, ...]:
        """What was not counted; empty if everything was."""
        return tuple(self._engine.reasons)

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
        self.blocks = tuple(self._engine.read())
        for block in self.blocks:
            seen = Block(Scope(), ISA, block.address, block.code, block.runs, block.active)
            parts.setdefault(block.label, []).append(classify_block(seen))
        self.work = {label: Classified.total(each) for label, each in parts.items()}


def _default_engine() -> Engine:
    found = counters.find("instrumented")  # raises where it does not work
    return cast(Engine, import_module(f"flopwatch.counters.{found.name}.inprocess").Engine())
