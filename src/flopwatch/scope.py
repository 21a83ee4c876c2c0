"""Where a piece of work happened: process, thread, layer, op, function; and the stack on which hooks keep it current."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """One place in a program; an empty field means that the place is not known on that axis."""

    process: str = ""
    thread: str = ""
    layer: str = ""
    op: str = ""
    function: str = ""
    span: str = ""


Settle = Callable[[int], None]


class Frame:
    """One entry of a thread's stack, handed out by `push` and given back to `pop`."""

    __slots__ = ("alive", "label", "scope", "stack")

    def __init__(self, scope: Scope, label: int, stack: list[Frame]) -> None:
        self.scope = scope
        self.label = label
        self.stack = stack
        self.alive = True


class Scopes:
    """The current scope of each thread. At every border, `settle(label)` is told whose the work since the last border is.

    Labels are small integers from 0 on; `scope(label)` turns one back. Each piece of work is settled exactly once, so
    rows made from labels sum to the total whatever the hooks do: a lost or doubled `pop` can put work in a wrong row,
    never in two. `settle` is for all threads together: while two threads work in different scopes at once, the split
    between these two is not exact, their sum is.
    """

    def __init__(self, settle: Settle, base: Scope = Scope()) -> None:
        self._settle: Settle | None = settle
        self._lock = threading.Lock()
        self._labels: dict[Scope, int] = {}
        self._scopes: list[Scope] = []
        self._base = base
        self._threads = threading.local()
        self.label(base)

    def label(self, scope: Scope) -> int:
        """The label of a scope, the same one for an equal scope."""
        found = self._labels.get(scope)
        if found is not None:
            return found
        with self._lock:
            if scope not in self._labels:
                self._labels[scope] = self._append(scope)
            return self._labels[scope]

    def fresh(self, scope: Scope) -> int:
        """A label of its own for one of several visits to a scope that are to be told apart."""
        with self._lock:
            return self._append(scope)

    def _append(self, scope: Scope) -> int:
        self._scopes.append(scope)
        return len(self._scopes) - 1

    def scope(self, label: int) -> Scope:
        """The scope of a label; raises IndexError for a label that was never given out."""
        if label < 0:
            raise IndexError(label)
        return self._scopes[label]

    @property
    def current(self) -> Scope:
        """The scope that the calling thread is in."""
        return self._stack()[-1].scope

    def push(self, scope: Scope, *, label: int | None = None) -> Frame:
        """Enter a scope; what ran until now belongs to the one left behind."""
        stack = self._stack()
        frame = Frame(scope, self.label(scope) if label is None else label, stack)
        self._border(stack[-1].label)
        stack.append(frame)
        return frame

    def pop(self, frame: Frame) -> None:
        """Leave a scope, in any order and more than once: a frame below the top goes without changing the current scope."""
        if not frame.alive:
            return
        stack = frame.stack
        self._border(stack[-1].label)
        frame.alive = False
        while not stack[-1].alive:
            stack.pop()

    def unwind(self, frame: Frame) -> None:
        """Leave everything that was entered since `frame` and never left; `frame` becomes the current one."""
        if not frame.alive:
            return
        stack = frame.stack
        if stack[-1] is not frame:
            self._border(stack[-1].label)
            while stack[-1] is not frame:
                stack.pop().alive = False

    def top(self) -> Frame:
        """The calling thread's current frame, to come back to with `unwind`."""
        return self._stack()[-1]

    @contextmanager
    def enter(self, scope: Scope) -> Iterator[Scope]:
        """Be in a scope for the length of a with block."""
        frame = self.push(scope)
        try:
            yield scope
        finally:
            self.pop(frame)

    def close(self) -> None:
        """Settle what the current scope still has, then never call `settle` again; later pushes and pops are harmless."""
        self._border(self._stack()[-1].label)
        self._settle = None

    def _border(self, label: int) -> None:
        settle = self._settle
        if settle is not None:
            settle(label)

    def _stack(self) -> list[Frame]:
        stack: list[Frame] | None = getattr(self._threads, "stack", None)
        if stack is None:
            stack = []
            stack.append(Frame(self._base, self.label(self._base), stack))
            self._threads.stack = stack
        return stack
