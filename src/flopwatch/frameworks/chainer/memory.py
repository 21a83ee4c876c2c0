"""How many bytes of activations are alive at once: the arrays that functions make, until nobody holds them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any


class Activations:
    """Bytes of the arrays that were shown to `add` and still exist; views share theirs. `peak` was reached in layer `at`."""

    def __init__(self, known: Iterable[Any]) -> None:
        self.now = self.peak = 0
        self.at = ""
        self._alive: dict[int, weakref.ref[Any]] = {}
        # Inputs were there before; they are held, so that their numbers stay theirs.
        self._before = [_whole(array) for array in known if hasattr(array, "nbytes")]
        self._known = {id(array) for array in self._before}

    def add(self, array: Any, layer: str) -> None:
        """An array has come out of a function in `layer`."""
        whole = _whole(array)
        number = id(whole)
        if number in self._alive or number in self._known:
            return
        size = whole.nbytes

        def freed(_: object) -> None:
            self._alive.pop(number, None)
            self.now -= size

        self._alive[number] = weakref.ref(whole, freed)
        self.now += size
        if self.now > self.peak:
            self.peak, self.at = self.now, layer


def _whole(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while hasattr(array.base, "nbytes") and hasattr(array.base, "base"):
        array = array.base
    return array
