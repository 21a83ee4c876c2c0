"""Keep the scope current while Chainer runs: link, function, and whether forward, backward or optimizer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from flopwatch.errors import UsageError
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, ROOT, Part
from flopwatch.frameworks._patches import Patches
from flopwatch.frameworks.chainer.compat import load
from flopwatch.scope import Frame, Scope, Scopes

chainer = load()
_FunctionHook: Any = chainer.FunctionHook
_LinkHook: Any = chainer.LinkHook

_NAME = "flopwatch"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function: its scope, and the label under which its work was settled."""

    label: int
    scope: Scope


class _Functions(_FunctionHook):  # type: ignore[misc]  # Chainer has no types
    name = _NAME

    def __init__(self, hooks: ChainerHooks) -> None:
        self._hooks = hooks

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        self._hooks._enter_function(function)

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        self._hooks._leave()

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self._hooks._enter_backward(function)

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        self._hooks._leave()


class _Links(_LinkHook):  # type: ignore[misc]  # as above
    name = _NAME

    def __init__(self, hooks: ChainerHooks) -> None:
        self._hooks = hooks

    def forward_preprocess(self, args: Any) -> None:
        self._hooks._enter_link(args.link)

    def forward_postprocess(self, args: Any) -> None:
        self._hooks._leave()


class ChainerHooks:
    """Push the links and functions that run in this thread onto `scopes`, for the length of a with block.

    Each piece of work is in one scope: layer is the path of the innermost link that was called ("inc3a/conv1"; the model
    itself is "(model)") or "(outside any module)", op the function, function "forward", "backward" or "optimizer". Backward
    belongs to the link in which the function was called; the functions that compute its gradients are part of it. Paths begin
    at `model`, or else at the outermost link that is called. `calls` are the calls of functions in order, each settled under
    a label of its own. Links called through `.forward` belong to the one around them, since Chainer's hooks do not see them.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, scopes: Scopes, model: Any = None) -> None:
        self.scopes = scopes
        self.calls: list[Call] = []
        self.links: dict[str, Any] = {}
        self._paths: dict[int, str] = {}
        self._makers: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._hooks: tuple[Any, ...] = (_Functions(self), _Links(self))
        self._patches = Patches()
        self._frames: list[Frame | None] = []
        self._outer: Frame | None = None
        if model is not None:
            self._name_links(model)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The links that have been named so far."""
        return tuple(Part(path, type(link).__name__, _own_parameters(link)) for path, link in self.links.items())

    def __enter__(self) -> Self:
        if self._outer is not None or _NAME in chainer.get_function_hooks():
            raise UsageError("Hooks of flopwatch are in use already: count one thing at a time.")
        self._outer = self.scopes.push(replace(self.scopes.current, layer=OUTSIDE, op="", function=FORWARD))
        for hook in self._hooks:
            hook.__enter__()
        # Chainer does not tell its hooks of exceptions.
        self._patches.wrap(chainer.Link, "__call__", functools.partial(self._unwinding, 0))
        self._patches.wrap(chainer.FunctionNode, "apply", functools.partial(self._unwinding, 0))
        self._patches.wrap(chainer._backprop_utils, "backprop_step", functools.partial(self._unwinding, 1))
        for optimizer in {chainer.Optimizer, *_subclasses(chainer.Optimizer)}:
            self._patches.wrap(optimizer, "update", self._updating)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patches.restore()
        for hook in reversed(self._hooks):
            hook.__exit__()
        if self._outer is not None:
            self.scopes.unwind(self._outer)
            self.scopes.pop(self._outer)
        self._frames.clear()
        self._outer = None

    def _unwinding(self, entered_before: int, original: Callable[..., Any]) -> Callable[..., Any]:
        """Leave everything that an exception left open; `entered_before` were entered before the call, for it alone."""

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            depth = len(self._frames) - entered_before
            try:
                return original(*args, **kwargs)
            except BaseException:
                while len(self._frames) > max(depth, 0):
                    self._leave()
                raise

        return run

    def _updating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self.scopes.enter(replace(self.scopes.current, layer=OUTSIDE, op="", function=OPTIMIZER)):
                return original(*args, **kwargs)

        return run

    def _enter_link(self, link: Any) -> None:
        if id(link) not in self._paths:
            self._name_links(link)
        current = self.scopes.current
        function = BACKWARD if current.function == BACKWARD else FORWARD
        self._frames.append(self.scopes.push(replace(current, layer=self._paths[id(link)], op="", function=function)))

    def _enter_function(self, function: Any) -> None:
        current = self.scopes.current
        self._makers[function] = current.layer
        if current.op:  # part of another function: a gradient
            self._frames.append(None)
        else:
            self._enter_call(replace(current, op=function.label))

    def _enter_backward(self, function: Any) -> None:
        layer = self._makers.get(function, OUTSIDE)
        self._enter_call(replace(self.scopes.current, layer=layer, op=function.label, function=BACKWARD))

    def _enter_call(self, scope: Scope) -> None:
        label = self.scopes.fresh(scope)
        self.calls.append(Call(label, scope))
        self._frames.append(self.scopes.push(scope, label=label))

    def _leave(self) -> None:
        frame = self._frames.pop() if self._frames else None
        if frame is not None:
            self.scopes.pop(frame)

    def _name_links(self, root: Any) -> None:
        name = ROOT
        while name in self.links:
            name = f"({type(root).__name__} {len(self.links)})"
        for path, link in root.namedlinks():
            if id(link) not in self._paths:
                inner = path.strip("/")
                full = name if not inner else inner if name == ROOT else f"{name}/{inner}"
                self._paths[id(link)] = full
                self.links[full] = link


def _own_parameters(link: Any) -> int:
    own = [getattr(link, name) for name in link._params]
    return sum(parameter.size for parameter in own if parameter.array is not None)


def _subclasses(base: Any) -> Iterator[Any]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)
