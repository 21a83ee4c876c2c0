"""The ways in which a model can be followed, tried in turn: on meta tensors, on fake ones, for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from flopwatch.events import Op
from flopwatch.frameworks import Traced
from flopwatch.frameworks.torch.hooks import TorchHooks
from flopwatch.frameworks.torch.running import step_of
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.mode import FollowingMeta
from flopwatch.frameworks.torch.tracing.twins import Twins, arguments_of, meta_of, replaced
from flopwatch.scope import Scopes
from flopwatch.subjects.model import ModelSubject

Emit = Callable[[Op], None]


def trace(subject: ModelSubject, emit: Emit, *, train: bool) -> Traced:
    """Run the model once and emit each operator that it calls, in its place."""
    model: nn.Module = subject.model
    ops: list[Op] = []
    twins = Twins(meta_of)
    with flags_of(model), replaced(model, twins):
        model.train(train)
        own = twins.all
        arguments = arguments_of(subject.arguments, twins, keep=True)
        activations = Activations(twins.all)
        step = step_of(model, arguments, {}, train=train)
        hooks = TorchHooks(model, Scopes(_nothing))
        with hooks, FollowingMeta(ops.append, hooks.scopes, activations):
            step()
    for op in ops:
        emit(op)
    return Traced(hooks.parts, "on meta tensors: nothing was computed", hooks.notes, activations.peak, activations.at)


@contextmanager
def flags_of(model: nn.Module) -> Iterator[None]:
    """Leave the training flags as they were."""
    flags = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag


def _nothing(label: int) -> None:
    pass
