"""Follow a program on the meta device, where tensors have shapes and no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from flopwatch.frameworks.torch.tracing.hooks import FollowingHooks
from flopwatch.frameworks.torch.tracing.memo import key_of
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.mode import Emit, Following
from flopwatch.frameworks.torch.tracing.plans import Plan
from flopwatch.frameworks.torch.tracing.shapes import META, SHAPED
from flopwatch.frameworks.torch.tracing.twins import SMALL, SPARSE, NeedsDataError

CPU = torch.device("cpu")


class NotOnMetaError(RuntimeError):
    """The meta device does not stand for what is asked for; a fake CPU can."""


class FollowingMeta(Following):  # type: ignore[no-untyped-call]  # PyTorch left it untyped
    """A real tensor that meets one without data is taken to have none either; small ones among themselves are computed with.

    So a program may look at its constants, shapes, positions and masks, as long as no activation or weight went into them. A real
    tensor that such a one was written to keeps its old content, which nobody may look at from then on.
    """

    def __init__(self, emit: Emit, hooks: FollowingHooks, activations: Activations, *, inferring: bool = False) -> None:
        super().__init__(emit, hooks, activations, inferring=inferring)
        self._stale: dict[int, torch.UntypedStorage] = {}

    def _key(self, func: Any, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return key_of(func, args, kwargs) if (plan.fresh or plan.same) and not self._hooks.casting else None

    def _run(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if plan.bare:
            return func(*args, **_placed(plan, args, kwargs))
        if self._hooks.casting:
            raise NotOnMetaError("automatic casts are not made on the meta device")
        real, hollow = self._look(args, kwargs)
        if not hollow:
            if plan.placed:  # what is real and small stays so, also when it is sent to where the rest is
                args, kwargs = tuple(map(_grounded, args)), {name: _grounded(value) for name, value in kwargs.items()}
            return func(*args, **kwargs)
        if plan.indexes:
            args = (args[0], [number for each in args[1] for number in self._numbered(each)], *args[2:])
        elif plan.data:
            raise NeedsDataError(f"the result of {plan.name} depends on data")
        written = args[0] if real and plan.writes and args else None
        if real or plan.placed:
            args = tuple(map(_lifted, args))
            kwargs = {name: _lifted(value) for name, value in kwargs.items()}
        shaped = SHAPED.get(plan.name)
        result = func(*args, **kwargs) if shaped is None else shaped(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.layout is not torch.strided:
            raise NeedsDataError(SPARSE)
        if isinstance(written, torch.Tensor) and not written.is_meta:
            storage = written.untyped_storage()
            self._stale[id(storage)] = storage
            return written
        return result

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, bool]:
        """Whether there are real tensors; whether there is one that has no data, or so large a one that we would not compute with it."""
        real = hollow = False
        elements: list[torch.Tensor] = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, torch.Tensor):
                    if each.is_meta:
                        hollow = True
                    else:
                        real = True
                        elements.append(each)
        if real and not hollow:
            hollow = _broadcast(elements) > SMALL or any(map(self._is_stale, elements))
        return real, hollow

    def _is_stale(self, tensor: torch.Tensor) -> bool:
        return bool(self._stale) and id(tensor.untyped_storage()) in self._stale

    def _numbered(self, index: torch.Tensor | None) -> Sequence[torch.Tensor | None]:
        """A mask as what it selects: as many numbers as are true, which only a real one tells; other indices as they are."""
        if index is None or index.dtype not in (torch.bool, torch.uint8):
            return (index,)
        if index.is_meta or self._is_stale(index):
            raise NeedsDataError("a mask of unknown content selects elements")
        return index.nonzero().unbind(1)


def _broadcast(tensors: Sequence[torch.Tensor]) -> int:
    """Elements of what tensors make together, if they are combined element by element; no less than the largest has."""
    depth = max(each.dim() for each in tensors)
    elements = 1
    for axis in range(1, depth + 1):
        elements *= max(each.size(-axis) for each in tensors if each.dim() >= axis)
    return elements


def _placed(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Where a tensor that is made of nothing is to be: large ones have no data, small ones of integers have."""
    device = kwargs.get("device")
    if device is None:
        return kwargs
    sizes = args[0] if args and isinstance(args[0], (list, tuple)) else args
    elements = 1
    for each in sizes:
        elements *= int(each) if isinstance(each, (int, torch.SymInt)) else 1
    if elements > SMALL:
        return {**kwargs, "device": META}
    if device.type == "meta" and plan.constant and _is_integer(plan, args, kwargs):
        return {**kwargs, "device": CPU}
    return kwargs


def _is_integer(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    dtype = kwargs.get("dtype")
    if dtype is None:
        return plan.name == "aten::arange" and all(isinstance(each, int) for each in args)
    return not (dtype.is_floating_point or dtype.is_complex)


def _lifted(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.is_meta else value.detach().to(META)
    if isinstance(value, torch.device):
        return META
    if isinstance(value, (list, tuple)):
        return type(value)(_lifted(each) for each in value)
    return value


def _grounded(value: Any) -> Any:
    return CPU if isinstance(value, torch.device) and value.type == "meta" else value
