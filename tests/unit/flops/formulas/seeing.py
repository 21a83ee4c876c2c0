"""Which operators real PyTorch code calls, as formulas see them: arguments by the names of the schema, tensors as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from flopwatch.events import Array, Op


def seen(call: Callable[[], Any]) -> list[Op]:
    """All operators that `call` dispatches, in order; on meta tensors nothing is computed."""
    with _Mode() as mode:
        call()
    return mode.ops


def only(name: str, call: Callable[[], Any]) -> Op:
    """The one call of an operator among those that are dispatched."""
    (found,) = (op for op in seen(call) if op.name == name)
    return found


def array_of(value: Any) -> Any:
    """A tensor as an array, lists of them too; anything else as it is."""
    if isinstance(value, torch.Tensor):
        nonzero = None
        if value.layout != torch.strided and value.layout is not torch._mkldnn:  # type: ignore[attr-defined]
            nonzero = value._nnz()
        return Array(tuple(value.shape), str(value.dtype).removeprefix("torch."), nonzero=nonzero)
    if isinstance(value, torch.ScriptObject):
        return [array_of(each) for each in value.unpack()[:2]]  # weight and bias of packed parameters
    if isinstance(value, (list, tuple)):
        return [array_of(each) for each in value]
    return value


class _Mode(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        given: dict[str, Any] = {}
        for place, argument in enumerate(func._schema.arguments):
            value = args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
            given[argument.name] = array_of(value)
        outputs = made if isinstance(made, (tuple, list)) else (made,)
        arrays = [array_of(each) for each in outputs]
        self.ops.append(
            Op(func._schema.name, given, tuple(each if isinstance(each, Array) else None for each in arrays))
        )
        return made
