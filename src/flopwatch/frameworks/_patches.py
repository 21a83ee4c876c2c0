"""Replace functions for a while: `wrap` them, `restore` them, and leave no trace in any `__dict__`."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any


class Patches:
    """Functions found in the `__dict__` of a class, a module or an object, replaced until `restore`."""

    def __init__(self) -> None:
        self._undo: list[tuple[object, str, object, object]] = []

    def wrap(self, owner: object, name: str, make: Callable[[Any], Any]) -> bool:
        """Put `make(original)` in the place of the function `name` that `owner` itself holds; False if it cannot be replaced."""
        original = vars(owner).get(name)
        if original is None:
            return False
        replacement = make(original)
        if not _put(owner, name, replacement):
            return False
        self._undo.append((owner, name, original, replacement))
        return True

    def restore(self) -> None:
        """Put all originals back, but for those that somebody else has replaced since: these keep ours inside theirs."""
        while self._undo:
            owner, name, original, replacement = self._undo.pop()
            if vars(owner).get(name) is replacement:
                _put(owner, name, original)


def _put(owner: object, name: str, value: object) -> bool:
    if isinstance(owner, type):
        try:
            setattr(owner, name, value)
        except TypeError:  # a class written in C
            return False
        return True
    # Past __setattr__: frameworks give it a meaning of its own. The order of the keys stays, since the key exists.
    attributes: MutableMapping[str, object] = vars(owner)
    attributes[name] = value
    return True
