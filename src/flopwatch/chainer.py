"""Chainer's part of the API: `with flopwatch.chainer.CounterHook() as counter: model.predict(image)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from flopwatch.errors import UsageError
from flopwatch.flops.convention import PMU, Convention
from flopwatch.flops.tally import Tally
from flopwatch.frameworks.chainer import ChainerHooks
from flopwatch.labelled import Counting, Engine
from flopwatch.scope import Scope


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function: "forward" or "backward", in which link, and what it executed on all threads."""

    function: str
    stage: str
    link: str
    tally: Tally


class CounterHook:
    """Counts what Chainer's functions execute during a with block; the figures are there when it has ended.

    A backward step is a call of its own, under the function's name, with all functions that compute its gradients in it.
    Paths of links begin at `model`, or else at the outermost link that is called. FLOP are counted under `convention`.
    """

    def __init__(self, model: Any = None, *, convention: Convention = PMU, engine: Engine | None = None) -> None:
        self._convention = convention
        self._counting = Counting(engine)
        self._hooks = ChainerHooks(self._counting.scopes, model)
        self._ended = False

    def __enter__(self) -> Self:
        self._counting.__enter__()
        try:
            self._hooks.__enter__()
        except BaseException as error:
            self._counting.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._hooks.__exit__(kind, error, trace)
        finally:
            self._counting.__exit__(kind, error, trace)
            self._ended = True

    @property
    def calls(self) -> list[Call]:
        """The calls of functions in order."""
        work = self._work()
        return [
            Call(call.scope.op, call.scope.function, call.scope.layer, work.get(call.label, Tally()))
            for call in self._hooks.calls
        ]

    @property
    def call_history(self) -> list[tuple[str, int]]:
        """Function and FLOP of each call, in order."""
        return [(call.function, self._flop(call.tally)) for call in self.calls]

    @property
    def total(self) -> int:
        """FLOP of everything in the with block, work outside of functions too."""
        return self._flop(Tally.total(self._work().values()))

    @property
    def by_function(self) -> dict[str, int]:
        """FLOP by function, forward and backward together; "" is work outside of functions. Sums to `total`."""
        return self._by(lambda scope: scope.op)

    @property
    def by_link(self) -> dict[str, int]:
        """FLOP by path of the link, its functions' backward included. Sums to `total`."""
        return self._by(lambda scope: scope.layer)

    def _by(self, name: Callable[[Scope], str]) -> dict[str, int]:
        rows: dict[str, int] = {}
        for label, tally in self._work().items():
            key = name(self._counting.scopes.scope(label))
            rows[key] = rows.get(key, 0) + self._flop(tally)
        return rows

    def _work(self) -> dict[int, Tally]:
        if not self._ended:
            raise UsageError("Counting has not ended yet.", todo="Read the figures after the with block.")
        return {label: each.tally for label, each in self._counting.work.items()}

    def _flop(self, tally: Tally) -> int:
        return sum(tally.flop(self._convention).values())
