"""Find the first thing that is not finite, by running the failing batch once more under hooks, and only then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from flopwatch.frameworks.torch.untouched import untouched
from flopwatch.training.precision.casting import floats, name_of
from flopwatch.training.precision.telemetry import Fault


def finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether every number in `tensors` is finite."""
    return all(bool(torch.isfinite(each).all()) for each in tensors)


class _Watch:
    """Hooks on every module that keep the first fault and the order in which modules ended."""

    def __init__(self, model: nn.Module, step: int, exact: bool) -> None:
        self.fault: Fault | None = None
        self.order: list[str] = []
        self._step, self._exact = step, exact
        self._handles = []
        for name, module in model.named_modules():
            self._handles.append(module.register_forward_pre_hook(self._before(name)))
            self._handles.append(module.register_forward_hook(self._after(name)))

    def _before(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Any) -> None:
            own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
            for tensor in floats(own):
                self._keep(name, "weights", tensor)

        return hook

    def _after(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Any, outputs: Any) -> None:
            self.order.append(name)
            for tensor in floats(outputs):
                self._keep(name, "output", tensor)

        return hook

    def _keep(self, name: str, what: Any, tensor: torch.Tensor) -> None:
        if self.fault is None and not finite([tensor]):
            self.fault = Fault(name, what, self._step, name_of(tensor.dtype), self._exact)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def replay(
    model: nn.Module, forward: Callable[..., Any], inputs: tuple[Any, ...], step: int, *, exact: bool
) -> tuple[Fault | None, list[str]]:
    """Run `forward(*inputs)` once under hooks on `model`; returns the first fault and the order in which modules ended.

    Weights, buffers, gradients and the random state are afterwards what they were.
    """
    given = floats(inputs)
    if not finite(given):
        return Fault("", "inputs", step, exact=exact), []
    watch = _Watch(model, step, exact)
    try:
        with untouched(model), torch.no_grad():
            forward(*inputs)
    finally:
        watch.remove()
    return watch.fault, watch.order


def first_gradient(
    model: nn.Module, gradient: Callable[[nn.Parameter], torch.Tensor | None], order: list[str], step: int
) -> Fault | None:
    """The module whose gradient was the first of backward not to be finite: of all such the one that forward ran last.

    `gradient` gives that of a parameter. `order` is the order of forward; empty: that in which the modules were defined.
    """
    rank = {name: place for place, name in enumerate(order or [name for name, _ in model.named_modules()])}
    bad: list[tuple[int, Fault]] = []
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            found = gradient(parameter)
            if found is not None and not finite([found]):
                dtype = name_of(parameter.dtype)
                bad.append((rank.get(name, -1), Fault(name, "gradient", step, dtype, exact=bool(order))))
    return max(bad, key=lambda each: each[0])[1] if bad else None
