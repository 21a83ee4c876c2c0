"""How many numbers of activations are alive at once, if each blob is let go after the last layer that takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from flopwatch.formats.caffe.network import Layer, Network

# Their tops are their bottoms under another name or shape.
_VIEWS = ("Dropout", "Flatten", "Reshape", "Split")


class Activations:
    """Follows the blobs of a network; `peak` numbers were alive in layer `at`.

    What is fed in is not among them. A layer in place, and one whose top is only a view, holds on to what it was given.
    """

    def __init__(self, network: Network) -> None:
        self.peak, self.at = 0, ""
        self._last: dict[str, int] = {}
        for number, layer in enumerate(network.layers):
            self._last |= dict.fromkeys(set(layer.bottoms) - set(layer.tops), number)
        # Blobs that nobody takes are results, and stay.
        self._end = len(network.layers)
        self._number = 0
        self._alive: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}
        self._owner: dict[str, str] = {}

    def step(self, layer: Layer, tops: Mapping[str, Iterable[int]]) -> None:
        """A layer has made blobs of these shapes."""
        for top, shape in tops.items():
            if top in layer.bottoms:
                continue
            owner = self._owner.get(layer.bottoms[0]) if layer.type in _VIEWS else top
            if owner is None:
                continue  # a view of what was fed in
            if owner == top:
                self._alive[top] = prod(shape)
            self._owner[top] = owner
            self._held.setdefault(owner, set()).add(top)
        now = sum(self._alive.values())
        if now > self.peak:
            self.peak, self.at = now, layer.name
        for name in (*layer.bottoms, *layer.tops):
            if self._last.get(name, self._end) <= self._number:
                self._let_go(name)
        self._number += 1

    def _let_go(self, name: str) -> None:
        owner = self._owner.get(name)
        if owner is None:
            return
        self._held[owner].discard(name)
        if not self._held[owner]:
            self._alive.pop(owner, None)
