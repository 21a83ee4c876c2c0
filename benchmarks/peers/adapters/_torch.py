"""What all counters of PyTorch models share."""

from __future__ import annotations

from typing import Any

from peers.adapters import NotForThisError
from peers.cases import Built, Case


def prepare(case: Case) -> Built:
    """The model in evaluation mode, and its arguments."""
    if case.build is None or case.train:
        raise NotForThisError
    return built(case)


def built(case: Case) -> Built:
    """The same also for cases with a backward."""
    if case.build is None:
        raise NotForThisError
    model, arguments = case.build()
    return model.eval(), arguments


def one_argument(model: Any) -> Any:
    """A module around another that takes the arguments as one list, for counters that hand over a single thing."""
    from torch import nn

    class Unpacking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, arguments: Any) -> Any:
            return self.inner(*arguments)

    return Unpacking()
