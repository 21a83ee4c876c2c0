"""One step of a PyTorch model: an inference, or forward, loss, backward and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from flopwatch.errors import UsageError
from flopwatch.frameworks.torch.untouched import untouched
from flopwatch.subjects.model import ModelSubject


@contextmanager
def steps(subject: ModelSubject, *, train: bool) -> Iterator[Callable[[], None]]:
    """A function that runs the model once; the model is as it was found afterwards.

    Training takes the loss that the model gives (an output named "loss"), else the cross entropy of a batch x classes output
    against class 0, else the mean square of all floating-point outputs, and plain SGD.
    """
    model: nn.Module = subject.model
    with untouched(model, training=train):
        model.train(train)
        yield step_of(model, subject.arguments, subject.kwargs, train=train)


def step_of(
    model: nn.Module,
    arguments: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    train: bool,
    call: Callable[..., Any] | None = None,
) -> Callable[[], None]:
    """A function that runs one inference, or one training step, of a model that is in the right mode already.

    `call` is what is to be called, if that is not the model; its inference is in the mode that it finds or chooses.
    """
    if train:
        return _training(model, call or model, arguments, kwargs)

    def step() -> None:
        with torch.inference_mode() if call is None else nullcontext():
            (call or model)(*arguments, **kwargs)

    return step


def _training(
    model: nn.Module, call: Callable[..., Any], arguments: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[], None]:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=1e-3) if trained else None

    def step() -> None:
        for parameter in trained:
            parameter.grad = None
        loss = _loss(call(*arguments, **kwargs))
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]  # PyTorch left it untyped
        if optimizer is not None:
            optimizer.step()

    return step


def _loss(output: Any) -> torch.Tensor:
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor) and own.is_floating_point():
        return own if own.dim() == 0 else own.mean()
    outputs = [each for each in _tensors(output) if each.is_floating_point()]
    losses = [
        functional.cross_entropy(each, each.new_zeros(len(each), dtype=torch.long))
        if each.dim() == 2
        else each.square().mean()
        for each in outputs
    ]
    if not losses:
        raise UsageError(
            "There is nothing to train: the model gives no floating-point numbers.",
            seen=f"It gave a {type(output).__name__}.",
        )
    return torch.stack(losses).sum() if len(losses) != 1 else losses[0]


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for each in output.values():
            yield from _tensors(each)
    elif isinstance(output, (list, tuple)):
        for each in output:
            yield from _tensors(each)
    elif is_dataclass(output) and not isinstance(output, type):
        for each in vars(output).values():
            yield from _tensors(each)
