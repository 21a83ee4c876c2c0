"""Be told of each operator and autograd node that PyTorch runs in this thread, without a change to what it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from flopwatch.frameworks.torch import _observer
except ImportError:  # not built, which `Operators.notes` says
    _observer = None  # type: ignore[assignment]

NODE = "autograd::engine::evaluate_function: "
"""How PyTorch begins the name of the whole handling of an autograd node; the node's name follows."""

_UNOBSERVED = (
    "Operators were seen through a dispatch mode, since PyTorch's observers cannot be used ({}): compiled models may have run"
    " operator by operator, and operators are named by their innermost part."
)


class Operators:
    """Call `enter(name)` and `leave()` around each operator, nested ones too, in the calling thread.

    Names are PyTorch's ("aten::conv2d"); the whole handling of an autograd node is named `NODE` + its name. Where the observers
    are not to be had, or `observe` is false, a dispatch mode takes their place: it sees only the innermost operators, and
    can change which of them run; `notes` says so.
    """

    def __init__(self, enter: Callable[[str], None], leave: Callable[[], None], *, observe: bool = True) -> None:
        self._enter, self._leave = enter, leave
        self._observe = observe
        self._observer: object | None = None
        self._mode: _Mode | None = None
        self.notes: tuple[str, ...] = ()

    def start(self) -> None:
        """Begin; to be ended by `stop` in the same thread."""
        why = "switched off"
        if self._observe:
            try:
                self._check()
                self._observer = self._open(self._enter, self._leave)
                return
            except NotImplementedError as error:
                why = str(error)
        self.notes = (_UNOBSERVED.format(why),)
        self._mode = _Mode(self._enter, self._leave)
        self._mode.__enter__()  # type: ignore[no-untyped-call]  # PyTorch left it untyped

    def stop(self) -> BaseException | None:
        """End, if begun; the first exception that `enter` or `leave` raised, which PyTorch could not be bothered with."""
        observer, self._observer = self._observer, None
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # as above
        return _observer.release(observer) if observer is not None else None

    def _check(self) -> None:
        """Raise NotImplementedError unless a known operator is reported by its name."""
        seen: list[str] = []
        observer = self._open(seen.append, lambda: seen.append("end"))
        torch.empty(0)
        _observer.release(observer)
        if seen != ["aten::empty", "end"]:
            raise NotImplementedError(f"torch.empty was reported as {seen}")

    @staticmethod
    def _open(enter: Callable[[str], None], leave: Callable[[], None]) -> object:
        if _observer is None:
            raise NotImplementedError("flopwatch was installed without its extension modules")
        library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
        compiler = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        return _observer.observe(library, enter, leave, getattr(compiler, "set_eval_frame", None))


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # as above
    def __init__(self, enter: Callable[[str], None], leave: Callable[[], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._enter, self._leave = enter, leave

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        node = torch._C._current_autograd_node()
        self._enter(func._schema.name if node is None else NODE + node.name())
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._leave()
