"""A machine that counts: modules and autograd functions of a known cost, and the fake counter that they run on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import nn

from flopwatch.frameworks.torch import TorchHooks
from flopwatch.scope import Scopes

_running: Machine | None = None


def work(amount: int) -> None:
    """Execute so many operations."""
    if _running is not None:
        _running.open += amount
        _running.total += amount


class Machine:
    """Runs one model under hooks; afterwards `rows(axis, ...)` says where the work went."""

    def __init__(self, model: nn.Module, *, observe: bool = True) -> None:
        self.open = 0
        self.total = 0
        self.settled: Counter[int] = Counter()
        self.scopes = Scopes(self.settle)
        self.hooks = TorchHooks(model, self.scopes, observe=observe)

    def settle(self, label: int) -> None:
        self.settled[label] += self.open
        self.open = 0

    def __enter__(self) -> Machine:
        global _running
        _running = self
        self.hooks.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        global _running
        try:
            self.hooks.__exit__(*error)
        finally:
            self.scopes.close()
            _running = None

    def rows(self, *axes: str) -> dict[Any, int]:
        """Work by one axis, or by tuples of several; without empty rows."""
        rows: Counter[Any] = Counter()
        for label, amount in self.settled.items():
            scope = self.scopes.scope(label)
            key = tuple(getattr(scope, axis) for axis in axes)
            rows[key if len(axes) > 1 else key[0]] += amount
        assert sum(rows.values()) == self.total
        return {key: amount for key, amount in rows.items() if amount}


class _Costly(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, amount: int) -> torch.Tensor:
        ctx.amount = amount
        work(amount)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        work(1000 * ctx.amount)
        return gradient * 2, None


def costly(x: torch.Tensor, amount: int) -> torch.Tensor:
    """A function that costs `amount` forward and 1000 x `amount` backward."""
    return _Costly.apply(x, amount)


class Cost(nn.Module):
    """A layer that costs `amount` forward and 1000 x `amount` backward."""

    def __init__(self, amount: int) -> None:
        super().__init__()
        self.amount = amount

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return costly(x, self.amount)
