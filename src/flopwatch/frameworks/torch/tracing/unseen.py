"""Run a model on tensors without data when nobody wants to know of its operators: to have what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from flopwatch.events import Op
from flopwatch.frameworks.torch.tracing.hooks import FollowingHooks
from flopwatch.frameworks.torch.tracing.kernels import attention_as_on_cpu
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.meta import FollowingMeta


@contextmanager
def unseen(model: nn.Module) -> Iterator[None]:
    """For the length of a with block a model whose parameters are on the meta device can be called; what fails there raises."""
    with attention_as_on_cpu(), FollowingMeta(_nobody, FollowingHooks(model), Activations(())):
        yield


def _nobody(op: Op) -> None:
    pass
