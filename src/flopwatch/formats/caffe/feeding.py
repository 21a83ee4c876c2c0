"""What goes into a network: the shapes that the file tells, that the user gives instead, and another batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flopwatch.errors import UsageError
from flopwatch.formats.caffe.layers.data import FEEDERS, told
from flopwatch.formats.caffe.layers.rules import Shape, shown
from flopwatch.formats.caffe.message import Place
from flopwatch.formats.caffe.network import Layer, Network

# Their first axis is time, so that a batch is not to be put there.
_STEPPING = ("LSTM", "RNN")


@dataclass(frozen=True)
class _Feed:
    """One blob from outside; labels follow the batch of the blob before them and are not asked for."""

    name: str
    shape: Shape | None
    place: Place
    follows: bool = False


def fed(
    network: Network, batch: int | None, shapes: Sequence[Shape], *, keep: bool
) -> tuple[dict[str, Shape], tuple[str, ...]]:
    """The shapes of all blobs that come from outside, and notes on what had to be assumed for it.

    `shapes` are for the inputs in the order of the file, labels left out. Without them and without `batch` it is one image, unless
    the file's own batch is to be kept (`keep`). Raises UsageError for sizes that nobody tells.
    """
    feeds, notes = _feeds(network)
    asked = [feed for feed in feeds if not feed.follows]
    if len(shapes) > len(asked):
        raise UsageError(
            f"{len(shapes)} shapes were given for {len(asked)} inputs.",
            seen=f"Inputs: {', '.join(feed.name for feed in asked) or 'none'}.",
        )
    given = dict(zip((feed.name for feed in asked), shapes, strict=False))
    stepping = any(layer.type in _STEPPING for layer in network.layers)
    if batch is not None and stepping:
        raise UsageError(
            "In a recurrent network of Caffe time comes first, so it is not clear where the batch is.",
            todo="Leave --batch out, and give all sizes with --input.",
        )
    result: dict[str, Shape] = {}
    # The batch goes wherever the first input has its own.
    rows = None
    own = ""
    for feed in feeds:
        shape = given.get(feed.name, feed.shape)
        if shape is None:
            feed.place.refuse(
                f"the file does not say how large {feed.name!r} is",
                todo=f"Give --input, for example 1x3x224x224{', once for each input' if len(asked) > 1 else ''}.",
            )
        if feed.follows and result:
            shape = (next(reversed(result.values()))[0], *shape[1:])
        elif rows is None and shape:
            rows = shape[0]
            if batch is None and not (keep or given or stepping) and rows > 1:
                # A deploy file says how many images its author sent at once; what is asked is what one costs.
                batch = 1
                own = f"one image is estimated: --batch {rows} takes the file's own batch"
        if batch is not None and shape and not feed.follows and shape[0] == rows:
            shape = (batch, *shape[1:])
        result[feed.name] = shape
    if given:
        notes = []
    if own:
        notes.append(own)
    fed_in = ", ".join(f"{name} {shown(shape)}" for name, shape in result.items())
    return result, (f"fed with {fed_in}", *notes)


def _feeds(network: Network) -> tuple[list[_Feed], list[str]]:
    feeds = [_Feed(each.name, each.sizes or None, each.place) for each in network.inputs]
    notes: list[str] = []
    for layer in network.layers:
        if layer.type in FEEDERS:
            shapes, assumed = told(layer)
            notes += assumed
            feeds += _of_layer(layer, shapes)
    made = {feed.name for feed in feeds} | {top for layer in network.layers for top in layer.tops}
    wanted = {bottom for layer in network.layers for bottom in layer.bottoms} - made
    for layer in network.others:
        # A network for training alone: what its data layer gives has to come from somewhere.
        if layer.type in FEEDERS and wanted & set(layer.tops):
            shapes, assumed = told(layer)
            feeds += [feed for feed in _of_layer(layer, shapes) if feed.name in wanted]
            notes += [f"{layer.name}: of the training phase, since the test phase has no layer for it", *assumed]
            wanted -= set(layer.tops)
    return feeds, notes


def _of_layer(layer: Layer, shapes: Sequence[Shape | None]) -> list[_Feed]:
    feeds = [_Feed(name, shape, layer.place) for name, shape in zip(layer.tops, shapes, strict=True)]
    if layer.type in ("Input", "DummyData"):
        return feeds
    return feeds[:1] + [replace(feed, follows=True) for feed in feeds[1:]]
