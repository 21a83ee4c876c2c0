"""The hooks on a model that is followed: those of measurements, and what a dispatch mode cannot see for itself."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from flopwatch.frameworks.torch.hooks import TorchHooks
from flopwatch.frameworks.torch.operators import NODE, Operators
from flopwatch.scope import Scopes


class FollowingHooks(TorchHooks):
    """Scopes as while measuring; `casting` becomes true when an operator is called under automatic casts for a CPU.

    That has to be looked at from outside the operator: within it, where dispatch modes are, casts are off. PyTorch's observers
    serve one at a time: `blind` says that they were taken, and that whoever sees operators has to tell of them, with `enter` and
    `leave`. The names are the same then, but for those of operators that record gradients, which are of their parts.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, Scopes(_nothing), eager=True)
        self.casting = False
        self._eyes = _Observed(self._enter_operator, self._leave_operator)
        self._operators = self._eyes
        self.leave = self._leave_operator

    @property
    def blind(self) -> bool:
        """Whether operators have to be told of."""
        return self._eyes.blind

    def enter(self, name: str) -> None:
        """An operator is called."""
        node = torch._C._current_autograd_node() if not self.scopes.current.op else None
        self._enter_operator(name if node is None else NODE + node.name())

    def _enter_operator(self, name: str) -> None:
        if torch.is_autocast_enabled("cpu"):
            self.casting = True
        super()._enter_operator(name)


class _Observed(Operators):
    """Observers only: somebody else is a dispatch mode already."""

    def __init__(self, enter: Callable[[str], None], leave: Callable[[], None]) -> None:
        super().__init__(enter, leave)
        self.blind = False

    def start(self) -> None:
        try:
            self._check()
            self._observer = self._open(self._enter, self._leave)
        except (NotImplementedError, RuntimeError):  # not to be had, or in use
            self.blind = True


def _nothing(label: int) -> None:
    pass
