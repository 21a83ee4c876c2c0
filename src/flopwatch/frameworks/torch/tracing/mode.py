"""Follow PyTorch from operator to operator: each call becomes an `Op` in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from flopwatch.events import Array, Op
from flopwatch.frameworks.torch.tracing.arrays import array_of, value_of
from flopwatch.frameworks.torch.tracing.hooks import FollowingHooks
from flopwatch.frameworks.torch.tracing.memo import recall, remember
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.plans import Plan, plan_of
from flopwatch.frameworks.torch.tracing.twins import SPARSE, NeedsDataError

Emit = Callable[[Op], None]

# Tensors that are not made of other tensors.
_PLAIN = frozenset((torch.Tensor, nn.Parameter, nn.Buffer, FakeTensor))

_DOTS = "aten::linalg_vecdot"
_DUAL = frozenset(("aten::_make_dual", "aten::_unpack_dual"))  # forward differentiation
# Of complex numbers they are defined as three of real ones.
_REAL_PARTS = frozenset(f"aten::conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3))


class WantsGradientsError(RuntimeError):
    """The program wants gradients, which there are none of in inference mode."""


def wants_gradients(error: BaseException) -> bool:
    """Whether a program failed because it wants gradients."""
    return isinstance(error, WantsGradientsError) or "does not require grad" in str(error)


class Following(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch left it untyped
    """Emit every operator that runs in this thread, with the scope that it runs in.

    Operators that are made of others count as one where they have a formula, else their parts are followed. Tensors that are made
    of others (a wrapper subclass) do their own part first.
    """

    supports_higher_order_operators = True

    def __init__(self, emit: Emit, hooks: FollowingHooks, activations: Activations, *, inferring: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._inferring = inferring
        self._emit, self._hooks, self._activations = emit, hooks, activations
        self._scopes = hooks.scopes

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        for each in types:
            if each not in _PLAIN:
                return NotImplemented
        if not isinstance(func, torch._ops.OpOverload):
            return self._higher_order(func, args, given)
        plan = plan_of(func)
        if plan.question:
            return func(*args, **given)
        if self._inferring and (torch.is_grad_enabled() or plan.name in _DUAL):
            raise WantsGradientsError("gradients are switched on within an inference")
        if not self._hooks.blind:
            return self._follow(func, plan, args, given)
        self._hooks.enter(plan.name)
        try:
            return self._follow(func, plan, args, given)
        finally:
            self._hooks.leave()

    def _follow(self, func: Any, plan: Plan, args: Sequence[Any], given: dict[str, Any]) -> Any:
        if plan.composite or (plan.name in _REAL_PARTS and args[0].is_complex()):
            with self:
                result = func.decompose(*args, **given)
            if result is not NotImplemented:
                return result
        scope = self._scopes.current
        if scope.op == _DOTS and not plan.views:
            return self._dots(func, plan, args, given)
        key = self._key(func, plan, args, given)
        known = None if key is None else recall(key)
        if known is not None:
            result = known.made(args)
        else:
            result = self._run(func, plan, tuple(args), given)
            if key is not None:
                known = remember(key, plan, args, given, result)
        if known is not None:
            self._emit(Op(plan.name, known.arguments, known.outputs, scope))
        else:
            arguments = plan.arguments(args, given)
            self._emit(Op(plan.name, arguments, tuple(_outputs(result)), scope))
        if not plan.views:
            self._keep(result, scope.layer)
        return result

    def _dots(self, func: Any, plan: Plan, args: Sequence[Any], given: dict[str, Any]) -> Any:
        """Many dot products at once, which come as one product of all elements and a sum where gradients are recorded."""
        result = self._run(func, plan, tuple(args), given)
        if plan.name == "aten::mul":
            arguments = {"x": value_of(args[0]), "y": value_of(args[1])}
            self._emit(Op(_DOTS, arguments, tuple(_outputs(result)), self._scopes.current))
        elif plan.name != "aten::sum":
            self._emit(Op(plan.name, plan.arguments(args, given), tuple(_outputs(result)), self._scopes.current))
        self._keep(result, self._scopes.current.layer)
        return result

    def _key(self, func: Any, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What tells this call from others, if its results need not be asked for twice."""
        return None

    def _run(self, func: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if type(result) is FakeTensor and result.layout is not torch.strided:
            raise NeedsDataError(SPARSE)
        return result

    def _keep(self, result: Any, layer: str) -> None:
        if isinstance(result, torch.Tensor):
            self._activations.add(result, layer)
        elif isinstance(result, (list, tuple)):
            for each in result:
                self._keep(each, layer)

    def _higher_order(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """An operator that takes functions: of a condition both branches are tried, and the one that does more is emitted."""
        if func is torch.ops.higher_order.cond:
            return self._conditional(*args, **kwargs)
        kernel = func.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
        if kernel is not None:  # it says what it is made of
            try:
                with self:
                    return kernel(*args, **kwargs)
            except (
                AssertionError
            ) as error:  # some want no mode about them: then only the functions that they call are followed
                if "Mode should never be enabled" not in str(error):
                    raise
                return kernel(*(self._followed(each) for each in args), **kwargs)
        self._emit(Op(f"higher_order::{func.name()}", _arrays(args), (), self._scopes.current))
        return func(*args, **kwargs)

    def _followed(self, value: Any) -> Any:
        if not callable(value) or isinstance(value, torch.Tensor):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return value(*args, **kwargs)

        return call

    def _conditional(self, pred: Any, true: Callable[..., Any], false: Callable[..., Any], operands: Any) -> Any:
        branches = []
        emit = self._emit
        for branch in (true, false):
            ops: list[Op] = []
            self._emit = ops.append
            try:
                with self:
                    branches.append((branch(*operands), ops))
            finally:
                self._emit = emit
        result, ops = max(branches, key=lambda each: sum(op.read + op.written for op in each[1]))
        for op in ops:
            emit(op)
        return result


def _outputs(result: Any) -> Iterator[Array | None]:
    if isinstance(result, torch.Tensor):
        yield array_of(result)
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from _outputs(each)
    elif result is None:
        yield None


def _arrays(values: Sequence[Any]) -> dict[str, Any]:
    return {str(i): value_of(each) for i, each in enumerate(values) if not callable(each)}
