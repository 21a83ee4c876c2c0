"""What is put aside while a model is followed: its own state, and what the caller has switched on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.jit import ScriptModule
from torch.utils._python_dispatch import _disable_current_modes

from flopwatch.frameworks.torch.tracing.programs import Called
from flopwatch.subjects.model.randomness import RandomStates


@contextmanager
def kept(model: nn.Module) -> Iterator[None]:
    """Leave the attributes of modules, training flags among them, and random numbers as they were."""
    holders = (*model.modules(), *(model.schedules if isinstance(model, Called) else ()))
    attributes = [(vars(holder), dict(vars(holder))) for holder in holders]
    flags = [
        (module, module.training)
        for module in model.modules()
        if isinstance(module, ScriptModule) and hasattr(module, "training")
    ]
    gradients = [(tensor, tensor.grad) for tensor in model.tensors] if isinstance(model, Called) else []
    states = RandomStates()
    try:
        yield
    finally:
        states.restore()
        for tensor, gradient in gradients:
            tensor.grad = gradient
        for module, flag in flags:
            if module.training is not flag:
                module.training = flag
        for now, before in attributes:
            if list(now) != list(before) or any(now[name] is not value for name, value in before.items()):
                now.clear()
                now.update(before)


@contextmanager
def asked_alone(model: nn.Module) -> Iterator[None]:
    """For the length of a with block nothing that the caller has entered matters, but for functions, which are called as they are.

    Long short-term memory is taken step by step, as on all devices but a CPU, whose kernel finds gradients that nobody wants.
    """
    with ExitStack() as stack:
        stack.enter_context(_disable_current_modes())  # of whoever asks: they are not to see what we do
        if not isinstance(model, Called):
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
        if any(isinstance(module, nn.LSTM) for module in model.modules()):
            stack.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
            torch._C._set_mkldnn_enabled(False)
        stack.enter_context(_uncompiled())
        yield


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Run what was compiled as if it had not been: whoever has compiled anything has loaded the compiler."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
