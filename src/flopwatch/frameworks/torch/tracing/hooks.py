"""The hooks on a model that is followed: those of measurements, and what a dispatch mode cannot see for itself."""

from __future__ import annotations

import torch
from torch import nn

from flopwatch.frameworks.torch.hooks import TorchHooks
from flopwatch.scope import Scopes


class FollowingHooks(TorchHooks):
    """Scopes as while measuring; `casting` becomes true when an operator is called under automatic casts for a CPU.

    That has to be looked at from outside the operator: within it, where dispatch modes are, casts are off.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, Scopes(_nothing), eager=True)
        self.casting = False

    def _enter_operator(self, name: str) -> None:
        if torch.is_autocast_enabled("cpu"):
            self.casting = True
        super()._enter_operator(name)


def _nothing(label: int) -> None:
    pass
