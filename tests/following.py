"""Estimate a program in a chosen way, and look at what came of it; for tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from flopwatch import estimate
from flopwatch.estimating import Estimation
from flopwatch.flops.tally import Tally
from flopwatch.frameworks.torch.tracing import following
from flopwatch.frameworks.torch.tracing.programs import subject_of
from flopwatch.record import Record, tally_of

WAYS = {"meta": following.on_meta, "fake": following.on_fake, "real": following.for_real}

MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "gradients": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


def function(body: Callable[..., Any]) -> nn.Module:
    """A module without parameters that computes a function."""

    class Function(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return body(*args, **kwargs)

    return Function()


def followed(way: str, program: Any, *args: Any, train: bool = False, **kwargs: Any) -> tuple[int, Tally]:
    """MAC and all operations of a program that is followed in one of WAYS; nothing in it may be unknown."""
    estimation = Estimation()
    for op in WAYS[way](subject_of(program, args, kwargs), train).ops:
        estimation.see(op)
    assert estimation.unknown == ()
    cells = estimation.cells
    return sum(cell.mac for cell in cells), Tally.total(tally_of(cell.operations) for cell in cells)


def forwards(model: nn.Module, *args: Any, **kwargs: Any) -> Iterator[tuple[str, int, Tally]]:
    """The forward of a model in all ways and modes: a name, MAC, operations."""
    model.eval()
    for way in WAYS:
        yield way, *followed(way, model, *args, **kwargs)
        for mode, entered in MODES.items():

            def call(*args: Any, entered: Any = entered, **kwargs: Any) -> Any:
                with entered():
                    return model(*args, **kwargs)

            yield f"{way}, {mode}", *followed(way, call, *args, **kwargs)


def without_dropout(model: nn.Module) -> nn.Module:
    """The model in training mode, without the random part."""
    model = copy.deepcopy(model).train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0  # type: ignore[assignment]
    return model


def macs(record: Record, axis: str) -> dict[str, int]:
    """MAC by layer, op or function, without those that have none."""
    found: dict[str, int] = {}
    for cell in record.cells:
        if cell.mac:
            found[getattr(cell, axis)] = found.get(getattr(cell, axis), 0) + cell.mac
    return found


def mac(program: Any, *args: Any, **kwargs: Any) -> int:
    """MAC of an estimate, in which nothing may be unknown."""
    record = estimate(program, *args, **kwargs)
    assert record.unknown == (), record.unknown
    return record.mac
