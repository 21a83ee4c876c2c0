"""Keep the scope current while a PyTorch model runs: layer, operator, and whether forward, backward or optimizer.

Nothing that PyTorch's own choice of kernels looks at is touched: hooks on modules make `nn.TransformerEncoderLayer` leave its
fused path, a function mode `nn.MultiheadAttention` too, and under a dispatch mode compiled models are run operator by operator.
Layers are seen by wrapping `forward` in the classes that define it, and `nn.Module.__call__`, so that a direct call of
`.forward` and an exception are seen too; operators and autograd nodes by PyTorch's observers (see `operators`).
"""

from __future__ import annotations

import functools
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FunctionType, TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.optim import Optimizer

from flopwatch.errors import UsageError
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, Part
from flopwatch.frameworks._patches import Patches
from flopwatch.frameworks.torch.layers import Layers
from flopwatch.frameworks.torch.operators import NODE, Operators
from flopwatch.scope import Frame, Scope, Scopes

# Marks kept at least, per thread, when old ones are thrown away: those of several steps of the largest models.
_MARKS = 1 << 20


class _Marks:
    """Which layer made the autograd node of a number: nodes are numbered in the order in which a thread makes them."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.layers: list[str] = []

    def set(self, layer: str) -> None:
        """From here on nodes are made in `layer`."""
        number = torch._C._autograd._get_sequence_nr()
        if self.numbers and self.numbers[-1] == number:
            self.layers[-1] = layer  # the layer before has made no node
            return
        self.numbers.append(number)
        self.layers.append(layer)
        if len(self.numbers) > 2 * _MARKS:
            del self.numbers[:_MARKS], self.layers[:_MARKS]

    def layer(self, number: int) -> str:
        """The layer that made node `number`; a node older than all marks was made outside."""
        index = bisect_right(self.numbers, number) - 1
        return self.layers[index] if index >= 0 else OUTSIDE


class _Thread(threading.local):
    def __init__(self, home: _Marks, owner: int) -> None:
        # A thread of its own numbering, as soon as it runs layers; PyTorch's backward threads run none, and handle our nodes.
        self.marks = home
        self.own = threading.get_ident() == owner
        self.operators: list[Frame | None] = []

    def enter_layer(self, layer: str) -> None:
        if not self.own:
            self.own, self.marks = True, _Marks()
        self.marks.set(layer)

    def return_to(self, layer: str) -> None:
        if self.own:
            self.marks.set(layer)


class TorchHooks:
    """Push the layers and operators of `model` onto `scopes` for the length of a with block; the model is not changed.

    Each piece of work is in one scope: layer is the path of the innermost module that is running, or "(outside any module)"
    with function "forward"; op the outermost ATen operator ("aten::conv2d"), in backward the autograd node
    ("ConvolutionBackward0"), whose layer is the one that ran when it was made. Recomputation (checkpointing) is "backward" of
    the layer that is computed again. Steps of optimizers are "optimizer", outside any module. A forward that returns a
    generator has returned: what the generator does later belongs to whoever iterates over it. Layers are seen in all threads,
    operators and backward in the thread that entered. `notes` says what could not be told apart. `eager` is for a run in
    which compiled modules are run as if they were not.
    """

    def __init__(self, model: nn.Module, scopes: Scopes, *, observe: bool = True, eager: bool = False) -> None:
        self.layers = Layers(model, eager=eager)
        self.scopes = scopes
        self._operators = Operators(self._enter_operator, self._leave_operator, observe=observe)
        self._patches = Patches()
        self._thread = _Thread(_Marks(), threading.get_ident())
        self._outer: Frame | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The layers of the model."""
        return self.layers.parts

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be told apart, and what was done to tell apart the rest; sentences."""
        sealed = tuple(
            f"{path} is compiled or scripted and runs as one piece: its layers are not told apart."
            for path in self.layers.sealed
        )
        return sealed + self._operators.notes

    def __enter__(self) -> Self:
        if self._outer is not None:
            raise UsageError("These hooks are in use already.")
        self._outer = self.scopes.push(replace(self.scopes.current, layer=OUTSIDE, op="", function=FORWARD))
        try:
            self._thread.enter_layer(OUTSIDE)
            self._wrap()
            self._operators.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = self._remove()
        if failure is not None and error is None:
            raise failure

    def _remove(self) -> BaseException | None:
        failure = self._operators.stop()
        self._patches.restore()
        if self._outer is not None:
            self.scopes.unwind(self._outer)
            self.scopes.pop(self._outer)
        self._outer = None
        return failure

    def _wrap(self) -> None:
        self._patches.wrap(nn.Module, "__call__", self._layered)
        for module in self.layers.modules.values():
            if "forward" in vars(module):
                self._patches.wrap(module, "forward", functools.partial(self._layered_bound, module))
        for owner in {owner for module in self.layers.modules.values() if (owner := _definer(module)) is not None}:
            self._patches.wrap(owner, "forward", self._layered)
        for optimizer in _subclasses(Optimizer):
            self._patches.wrap(optimizer, "step", self._stepping)

    def _layered(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            # Whatever is being compiled must come out as it would without us.
            if torch.compiler.is_compiling() or (frame := self._enter_layer(module)) is None:
                return original(module, *args, **kwargs)
            try:
                return original(module, *args, **kwargs)
            finally:
                self._leave_layer(frame)

        return run

    def _layered_bound(self, module: nn.Module, original: Callable[..., Any]) -> Callable[..., Any]:
        """For a `forward` that stands in the object itself and so gets no `self`."""

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or (frame := self._enter_layer(module)) is None:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                self._leave_layer(frame)

        return run

    def _stepping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(optimizer: Optimizer, /, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._outer is None:
                return original(optimizer, *args, **kwargs)
            with self.scopes.enter(replace(self.scopes.current, layer=OUTSIDE, op="", function=OPTIMIZER)):
                return original(optimizer, *args, **kwargs)

        return run

    def _enter_layer(self, module: nn.Module) -> Frame | None:
        path = self.layers.path(module)
        if path is None or self._outer is None:
            return None
        current = self.scopes.current
        function = BACKWARD if current.function == BACKWARD else FORWARD
        scope = replace(current, layer=path, op="", function=function)
        if scope == current:  # from __call__ to forward, or to the forward of a base class
            return None
        frame = self.scopes.push(scope)
        self._thread.enter_layer(path)
        return frame

    def _leave_layer(self, frame: Frame) -> None:
        self.scopes.pop(frame)
        self._thread.return_to(self.scopes.current.layer)

    def _enter_operator(self, name: str) -> None:
        """Called by PyTorch, in pairs with `_leave_operator` whatever happens in between."""
        current = self.scopes.current
        frame: Frame | None = None
        if name.startswith(NODE):
            frame = self.scopes.push(self._scope_of_node(name.removeprefix(NODE), current))
            self._thread.return_to(frame.scope.layer)  # nodes made in here are for derivatives of derivatives
        elif not current.op:
            frame = self.scopes.push(replace(current, op=name))
        self._thread.operators.append(frame)

    def _leave_operator(self) -> None:
        frame = self._thread.operators.pop() if self._thread.operators else None
        if frame is not None:
            self.scopes.pop(frame)
            self._thread.return_to(self.scopes.current.layer)

    def _scope_of_node(self, name: str, current: Scope) -> Scope:
        node = torch._C._current_autograd_node()
        layer: str | None = OUTSIDE
        if node is not None and name.endswith("AccumulateGrad"):
            layer = self.layers.owner(getattr(node, "variable", None))
        elif node is not None:
            layer = self._thread.marks.layer(node._sequence_nr())
        return replace(current, layer=layer or OUTSIDE, op=name.rpartition("::")[2], function=BACKWARD)


def _definer(module: nn.Module) -> type | None:
    """The class whose `forward` a module runs, if that is a function written in Python that can be replaced."""
    for owner in type(module).__mro__:
        if "forward" in vars(owner):
            found = vars(owner)["forward"]
            if owner is nn.Module or not isinstance(found, FunctionType) or _asks_for_itself(found):
                return None
            return owner
    return None


def _asks_for_itself(function: FunctionType) -> bool:
    # Some look whether the class still has them, and do something else if not (checkpointing, in transformers' layers).
    return function.__code__.co_name in function.__code__.co_freevars


def _subclasses(base: Any) -> Iterator[Any]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)
