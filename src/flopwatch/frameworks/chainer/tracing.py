"""Follow a Chainer model from function to function: a real run on NumPy, since Chainer has no arrays without data.

Nothing is left out of it to save time: functions of the user's may look at values, and a made-up zero could send them elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from flopwatch.events import Array, Op, Traced
from flopwatch.frameworks import BACKWARD, OPTIMIZER
from flopwatch.frameworks._patches import Patches
from flopwatch.frameworks.chainer.compat import load
from flopwatch.frameworks.chainer.hooks import ChainerHooks
from flopwatch.frameworks.chainer.memory import Activations
from flopwatch.frameworks.chainer.running import steps
from flopwatch.scope import Scopes
from flopwatch.subjects.model import ModelSubject
from flopwatch.subjects.model.randomness import RandomStates

_HOW = "by a real run, function by function"
_NOTE = "what the model computes with NumPy, outside of Chainer's functions, is not seen"


def trace(subject: ModelSubject, emit: Callable[[Op], None], *, train: bool) -> Traced:
    """Run one inference, or with `train` one training step, and emit each function that is called, forward and backward.

    The model works as a copy that shares its weights, so that its state stays as it was; generators of random numbers as well.
    """
    own = subject.model if train else subject.model.copy(mode="share")
    states = RandomStates()
    try:
        with steps(replace(subject, model=own), train=train) as step:
            scopes = Scopes(_unheeded)
            hooks = ChainerHooks(scopes)
            activations = Activations(subject.arguments)
            with hooks, _Emitting(scopes, emit, activations):
                step()
    finally:
        states.restore()
    parameters = {id(parameter): parameter for link in hooks.links.values() for parameter in link.params()}
    held = sum(each.array.nbytes for each in parameters.values() if each.array is not None)
    kept = sum(getattr(value, "nbytes", 0) for link in hooks.links.values() for value in _persistents(link))
    return Traced(hooks.parts, _HOW, (_NOTE,), activations.peak, activations.at, held, kept)


def _unheeded(label: int) -> None:
    pass


def _persistents(link: Any) -> list[Any]:
    return [getattr(link, name) for name in link._persistent]


class _Emitting:
    """Emits an operator for each function that runs; functions that a function calls while it computes are part of it."""

    def __init__(self, scopes: Scopes, emit: Callable[[Op], None], activations: Activations) -> None:
        self._scopes = scopes
        self._emit = emit
        self._activations = activations
        self._patches = Patches()
        self._inside = False

    def __enter__(self) -> None:
        chainer = load()
        self._patches.wrap(chainer.FunctionNode, "apply", self._applying)
        # Functions of the old style compute their gradients on plain arrays.
        self._patches.wrap(chainer.function.FunctionAdapter, "backward", self._adapting)
        for rule in {chainer.UpdateRule, *_subclasses(chainer.UpdateRule)}:
            self._patches.wrap(rule, "update_core", self._updating)

    def __exit__(self, *error: object) -> None:
        self._patches.restore()

    def _applying(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def apply(function: Any, inputs: Any) -> Any:
            outside, self._inside = self._inside, True
            try:
                outputs = original(function, inputs)
            finally:
                self._inside = outside
            if not outside:
                self._send(_name(function), function, inputs, outputs)
                for output in outputs:
                    self._activations.add(output.array, self._scopes.current.layer)
            return outputs

        return apply

    def _adapting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(function: Any, indexes: Any, gradients: Any) -> Any:
            outside, self._inside = self._inside, True
            try:
                result = original(function, indexes, gradients)
            finally:
                self._inside = outside
            if not outside:
                given = [gradient for gradient in gradients if gradient is not None]
                self._send(f"{_name(function)}Backward", function, given, [each for each in result if each is not None])
            return result

        return backward

    def _updating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update_core(rule: Any, parameter: Any) -> Any:
            outside, self._inside = self._inside, True
            try:
                return original(rule, parameter)
            finally:
                self._inside = outside
                if not outside and parameter.grad is not None:
                    self._send(_named(rule), rule, [parameter, parameter.grad], [parameter])

        return update_core

    def _send(self, name: str, function: Any, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        scope = self._scopes.current
        # In a backward pass the operator is the function whose gradient is made.
        if not (scope.op and scope.function == BACKWARD):
            scope = replace(scope, op=type(function).__name__ if scope.function == OPTIMIZER else function.label)
        arguments = {"inputs": [_array(each) for each in inputs], **_settings(function)}
        self._emit(Op(name, arguments, tuple(_array(each) for each in outputs), scope))


def _name(function: Any) -> str:
    inner = getattr(function, "function", None)
    return _named(function if inner is None else inner)


def _named(instance: Any) -> str:
    """Chainer's own are "chainer::CLASS", those of others have the name of their module instead."""
    kind = type(instance)
    room = "chainer" if kind.__module__.partition(".")[0] == "chainer" else kind.__module__
    return f"{room}::{kind.__name__}"


def _array(value: Any) -> Array | None:
    return None if value is None else Array(tuple(value.shape), str(value.dtype))


def _settings(function: Any) -> Mapping[str, Any]:
    """Attributes that are plain values, under their own names; functions of the old style keep them inside an adapter."""
    inner = getattr(function, "function", None)
    return {
        name: value
        for name, value in vars(function if inner is None else inner).items()
        if not name.startswith("_") and _plain(value)
    }


def _plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    return value is None or value is ... or isinstance(value, (bool, int, float, str, slice))


def _subclasses(base: Any) -> Iterable[Any]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)
