"""Follow a network from layer to layer: shapes, weights, and one operator call for each layer."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from flopwatch.errors import UsageError
from flopwatch.events import Array, Op, Part, Traced
from flopwatch.formats.caffe.feeding import fed
from flopwatch.formats.caffe.layers import RULES, Made, Shape, refuse, spelled
from flopwatch.formats.caffe.layers.data import FEEDERS
from flopwatch.formats.caffe.memory import Activations
from flopwatch.formats.caffe.network import Layer, Network, read
from flopwatch.formats.caffe.text import parse
from flopwatch.scope import Scope

# All that Caffe computes on; a number takes so many bytes.
_BYTES = 4


def trace(
    path: Path,
    emit: Callable[[Op], None],
    *,
    batch: int | None = None,
    keep_batch: bool = False,
    shapes: Sequence[Shape] | Mapping[str, Shape] = (),
    dims: Mapping[str, int] | None = None,
) -> Traced:
    """Emit the layers of the test phase as operators "caffe::TYPE" and tell of their weights and activations.

    `batch` replaces the first size of all inputs that have the batch of the first; without it, one image is followed, or with
    `keep_batch` as many as the file says. `shapes` are whole shapes of the inputs in
    the order of the file. Raises UsageError, with the line, for text that is malformed or a network that does not fit together.
    """
    if isinstance(shapes, Mapping):
        raise UsageError(
            "Inputs of a network of Caffe have shapes in their order.", todo="Write --input SHAPE for each."
        )
    if dims:
        raise UsageError("A network of Caffe has no sizes with names.", seen=f"Given: {', '.join(dims)}.")
    if batch is not None and batch < 1:
        raise UsageError(f"A batch cannot have {batch} images.", todo="Give a number from 1 on.")
    if path.suffix == ".caffemodel":
        raise UsageError(f"{path} holds the weights of a network.", todo="Give the .prototxt that describes it.")
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read as text.", seen=f"{error}.") from error
    network = _spelled(read(parse(text, path.name)))
    blobs, notes = fed(network, batch, shapes, keep=keep_batch)
    return _Walk(network, blobs, emit).run(notes)


def _spelled(network: Network) -> Network:
    layers, others = (
        tuple(replace(layer, type=spelled(layer.type)) for layer in each) for each in (network.layers, network.others)
    )
    return replace(network, layers=layers, others=others)


class _Walk:
    def __init__(self, network: Network, blobs: dict[str, Shape], emit: Callable[[Op], None]) -> None:
        self._network = network
        self._shapes = blobs
        self._emit = emit
        self._unmade: dict[str, Layer] = {}
        self._makers: dict[str, Layer] = {}
        self._shared: set[str] = set()
        self._parts: list[Part] = []
        self._parameters = self._buffers = 0
        self._activations = Activations(network)

    def run(self, notes: tuple[str, ...]) -> Traced:
        for layer in self._network.layers:
            if layer.type in FEEDERS:
                self._parts.append(Part(layer.name, layer.type, 0))
                self._activations.step(layer, {})
            else:
                self._step(layer)
            self._makers |= dict.fromkeys(layer.tops, layer)
        return Traced(
            tuple(self._parts),
            "from the text of the file",
            notes,
            self._activations.peak * _BYTES,
            self._activations.at,
            self._parameters * _BYTES,
            self._buffers * _BYTES,
        )

    def _step(self, layer: Layer) -> None:
        bottoms = [self._bottom(layer, name) for name in layer.bottoms]
        for top in layer.tops:
            if top in self._makers and top not in layer.bottoms:
                refuse(layer, f"makes {top!r}, which {self._makers[top].named} has made already")
        if len(set(layer.tops)) != len(layer.tops):
            refuse(layer, "makes a blob twice")
        rule = RULES.get(layer.type)
        if rule is None:
            self._parts.append(Part(layer.name, layer.type, 0))
            self._unmade |= dict.fromkeys(layer.tops, layer)
            for top in layer.tops:
                self._shapes.pop(top, None)
            self._activations.step(layer, {})
            self._send(layer, {"bottoms": [Array(shape) for shape in bottoms]}, (None,) * len(layer.tops))
            return
        made = rule(layer, bottoms)
        if len(layer.tops) > len(made.tops):
            refuse(layer, f"makes {len(made.tops)} blobs, not {len(layer.tops)}", bottoms)
        held = self._held(layer, made)
        self._parameters += held
        kept = sum(map(_size, made.buffers.values()))
        self._buffers += kept
        self._parts.append(Part(layer.name, layer.type, held, (held + kept) * _BYTES))
        tops = made.tops[: len(layer.tops)]
        self._shapes |= zip(layer.tops, tops, strict=True)
        self._activations.step(layer, dict(zip(layer.tops, tops, strict=True)))
        arguments = {
            "bottoms": [Array(shape) for shape in bottoms],
            **{name: Array(shape) for name, shape in (*made.weights.items(), *made.buffers.items())},
            **made.settings,
        }
        # A loss may leave its top unnamed; it is made all the same.
        self._send(layer, arguments, tuple(Array(shape) for shape in tops or made.tops[:1]))

    def _bottom(self, layer: Layer, name: str) -> Shape:
        if name in self._shapes:
            return self._shapes[name]
        unknown = self._unmade.get(name)
        if unknown is not None:
            near = difflib.get_close_matches(unknown.type, RULES, n=1, cutoff=0.7)
            unknown.place.refuse(
                f"{unknown.named} is of a type that is not known, so the size of {name!r} is not known either",
                seen=f"It is needed by {layer.named} of line {layer.place.line}.",
                todo=f"Did you mean {near[0]}?"
                if near
                else "Cut the network off before it, or feed what it gives as an input.",
            )
        later = next((each for each in self._network.layers if name in each.tops), None)
        if later is layer:
            refuse(layer, f"takes {name!r}, which it makes itself")
        if later is not None:
            refuse(layer, f"takes {name!r}, which is made only by {later.named} of line {later.place.line}, after it")
        refuse(layer, f"takes {name!r}, which no layer makes")

    def _held(self, layer: Layer, made: Made) -> int:
        """Learned parameters of a layer; those that another layer before it shares with it are not its own."""
        held = 0
        for position, shape in enumerate(made.weights.values()):
            name = layer.shared[position] if position < len(layer.shared) else ""
            if not name or name not in self._shared:
                held += _size(shape)
            if name:
                self._shared.add(name)
        return held

    def _send(self, layer: Layer, arguments: Mapping[str, object], outputs: tuple[Array | None, ...]) -> None:
        scope = Scope(layer=layer.name, op=layer.type, function="forward")
        self._emit(Op(f"caffe::{layer.type}", arguments, outputs, scope))


def _size(shape: Shape) -> int:
    return Array(shape).size
