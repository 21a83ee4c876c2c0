"""How many bytes of activations are alive at once, if each is let go after the last node that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.formats.onnx.values import Value, bytes_of


class Activations:
    """Follows the values of one graph; `peak` is in bytes, `at` the layer that it was reached in.

    Inputs and constants are not among them, nor is what a loop or a branch makes for itself. A view holds what it looks at.
    """

    def __init__(self, graph: Any) -> None:
        self.peak, self.at = 0, ""
        self._last: dict[str, int] = {}
        for place, node in enumerate(graph.node):
            for name in _taken(node):
                self._last[name] = place
        for output in graph.output:
            self._last[output.name] = len(graph.node)
        self._place = 0
        self._alive = 0
        self._owner: dict[str, str] = {}
        self._held: dict[str, int] = {}
        self._size: dict[str, int] = {}
        self._ends: dict[int, list[str]] = {}

    def step(self, node: Any, layer: str, outputs: Mapping[str, Value], *, view: bool) -> None:
        """One node has run."""
        place, self._place = self._place, self._place + 1
        source = self._owner.get(node.input[0]) if view and node.input else None
        for name, value in outputs.items():
            if value.roots is not None and not view:
                continue
            if view and source is None:
                continue  # of an input or a constant
            owner = source if source is not None else name
            if owner == name:
                self._size[name] = bytes_of(value)
                self._alive += self._size[name]
            self._owner[name] = owner
            self._held[owner] = self._held.get(owner, 0) + 1
            self._ends.setdefault(max(place, self._last.get(name, place)), []).append(owner)
        if self._alive > self.peak:
            self.peak, self.at = self._alive, layer
        for owner in self._ends.pop(place, ()):
            self._held[owner] -= 1
            if not self._held[owner]:
                self._alive -= self._size[owner]


def _taken(node: Any) -> Sequence[str]:
    """The values that a node takes, those that its graphs take from around them too."""
    names = list(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
            for inner in graph.node:
                names += _taken(inner)
            names += [output.name for output in graph.output]
    return names
