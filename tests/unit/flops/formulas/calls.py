"""Runs PyTorch for real and tells which operators it calls, with the names that their schemas give to the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from flopwatch.events import Array, Op


def array(tensor: torch.Tensor) -> Array:
    return Array(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return array(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
        for argument in func._schema.arguments:
            given.setdefault(argument.name, argument.default_value)
        outs = out if isinstance(out, list | tuple) else (out,)
        outputs = tuple(array(each) if isinstance(each, torch.Tensor) else None for each in outs)
        self.ops.append(Op(func._schema.name, {name: _plain(value) for name, value in given.items()}, outputs))
        return out


def calls(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Op]:
    """The operators that a call of a function ends in, in order."""
    with _Recorder() as recorder:
        function(*args, **kwargs)
    return recorder.ops
