"""Follow PyTorch from operator to operator: each call becomes an `Op` in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from flopwatch.events import Array, Op
from flopwatch.frameworks.torch.tracing.arrays import array_of
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.plans import Plan, plan_of
from flopwatch.frameworks.torch.tracing.twins import SMALL
from flopwatch.scope import Scopes

Emit = Callable[[Op], None]


# Tensors that are not made of other tensors.
_PLAIN = frozenset((torch.Tensor, nn.Parameter, nn.Buffer, FakeTensor))


class NeedsDataError(RuntimeError):
    """The program asks for the content of a tensor that has none."""


class Following(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch left it untyped
    """Emit every operator that runs in this thread, with the scope that it runs in."""

    supports_higher_order_operators = True

    def __init__(self, emit: Emit, scopes: Scopes, activations: Activations) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._emit, self._scopes, self._activations = emit, scopes, activations

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        for each in types:
            if each not in _PLAIN:
                return NotImplemented  # a tensor that is made of others: its parts are what we want to see
        if not isinstance(func, torch._ops.OpOverload):
            return NotImplemented
        plan = plan_of(func)
        if plan.question:
            return func(*args, **given)
        if plan.composite:
            with self:
                result = func.decompose(*args, **given)
            if result is not NotImplemented:
                return result
        result = self._run(func, plan, tuple(args), given)
        self._tell(plan, args, given, result)
        return result

    def _run(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return func(*args, **kwargs)

    def _tell(self, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        scope = self._scopes.current
        outputs: list[Array | None] = []
        self._collect(result, outputs, None if plan.views else scope.layer)
        self._emit(Op(plan.name, plan.arguments(tuple(args), kwargs), tuple(outputs), scope))

    def _collect(self, result: Any, outputs: list[Array | None], layer: str | None) -> None:
        if isinstance(result, torch.Tensor):
            outputs.append(array_of(result))
            if layer is not None:
                self._activations.add(result, layer)
        elif isinstance(result, (list, tuple)):
            for each in result:
                self._collect(each, outputs, layer)
        elif result is None:
            outputs.append(None)


class FollowingMeta(Following):
    """The same on the meta device: a real tensor that meets one without data is taken for one; small ones among themselves are real."""

    def _run(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if plan.bare:
            if kwargs.get("device") is not None and _is_big(args, kwargs):
                kwargs = {**kwargs, "device": torch.device("meta")}
            return func(*args, **kwargs)
        if torch.is_autocast_enabled("cpu"):
            raise AutocastError("autocast is for a device that the meta device does not stand for")
        real, meta, largest = _look(args, kwargs)
        if not meta and largest <= SMALL:
            return func(*args, **kwargs)
        if plan.data:
            raise NeedsDataError(f"the result of {plan.name} depends on data")
        if real:
            args, kwargs = _lifted(args), {name: _lifted(value) for name, value in kwargs.items()}
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("meta")}
        return func(*args, **kwargs)


class AutocastError(RuntimeError):
    """Automatic casts are asked for, which are not made on the meta device."""


def _look(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, bool, int]:
    """Whether there are real tensors, whether there are meta ones, and the elements of the largest."""
    real = meta = False
    largest = 0
    for value in (*args, *kwargs.values()) if kwargs else args:
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, torch.Tensor):
                if each.is_meta:
                    meta = True
                else:
                    real = True
                    largest = max(largest, each.numel())
    return real, meta, largest


def _lifted(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value if value.is_meta else value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_lifted(each) for each in value)
    return value


def _is_big(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    size = args[0] if args else None
    if not isinstance(size, (list, tuple)):
        return False
    elements = 1
    for each in size:
        elements *= int(each)
    return elements > SMALL
