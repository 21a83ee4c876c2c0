"""Run a model and leave it as it was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.jit import ScriptModule

from flopwatch.subjects.model.randomness import RandomStates


@contextmanager
def untouched(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """Restore after a with block: training flags, buffers, gradients, requires_grad, random state; also if it raises.

    Parameters are restored with `training` only, when an optimizer may write to them: it costs a copy of the model.
    """
    flags = [(module, module.training) for module in model.modules() if hasattr(module, "training")]
    held = [(holder, dict(holder)) for module in model.modules() for holder in _holders(module)]
    tensors = list(model.buffers()) + (list(model.parameters()) if training else [])
    copies = [(tensor, tensor.detach().clone()) for tensor in tensors if tensor.layout is torch.strided]
    gradients = [(parameter, parameter.grad, parameter.requires_grad) for parameter in model.parameters()]
    # A gradient that is added to would change in place: the run gets none, the old objects come back afterwards.
    for parameter, gradient, _ in gradients:
        if gradient is not None:
            parameter.grad = None
    states = RandomStates()
    try:
        yield
    finally:
        states.restore()
        for module, flag in flags:
            module.training = flag
        for holder, content in held:
            if list(holder) != list(content) or any(holder[name] is not content[name] for name in content):
                holder.clear()
                holder.update(content)
        with torch.no_grad():
            for tensor, copy in copies:
                if tensor.shape != copy.shape or tensor.dtype != copy.dtype:
                    tensor.data = copy
                elif not torch.equal(tensor, copy):
                    tensor.copy_(copy)
        for parameter, gradient, wanted in gradients:
            parameter.grad = gradient
            parameter.requires_grad_(wanted)


def _holders(module: nn.Module) -> tuple[dict[str, torch.Tensor | None], ...]:
    if isinstance(module, ScriptModule):  # nothing can be put in the place of what it holds
        return ()
    return module._buffers, module._parameters  # type: ignore[return-value]  # parameters are tensors
