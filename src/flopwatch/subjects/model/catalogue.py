"""Models that packages know by name: torchvision's, timm's, Chainer's ImageNet networks."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from flopwatch.errors import FlopwatchError, UsageError
from flopwatch.subjects.model.inputs import Shape, parse_shape

# The networks of chainer.links that can be built without a file of weights, by the names of the 2018 tool.
CHAINER = {
    "googlenet": "GoogLeNet",
    "resnet50": "ResNet50Layers",
    "resnet101": "ResNet101Layers",
    "resnet152": "ResNet152Layers",
    "vgg16": "VGG16Layers",
}

# By module of torchvision.models: the input that its documentation gives, and whether images come as a list.
_TORCHVISION = {
    "torchvision.models.detection": ("1x3x800x800", True),
    "torchvision.models.segmentation": ("1x3x520x520", False),
    "torchvision.models.video.resnet": ("1x3x16x112x112", False),
    "torchvision.models.video": ("1x3x16x224x224", False),
    "torchvision.models": ("1x3x224x224", False),
}


@dataclass(frozen=True, slots=True)
class Made:
    """A model that was built: its arguments if it brings them, else the shapes of an input; `listed` if it takes a list of images.

    `source` says in words what the arguments are, where they were made as asked for; `tokens` are those that one call handles;
    `dtype` is what the model was built in, empty if it is yet to be cast.
    """

    model: Any
    arguments: tuple[Any, ...] | None = None
    shapes: tuple[Shape, ...] = ()
    listed: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    dtype: str = ""
    notes: tuple[str, ...] = ()
    tokens: int = 0


@contextmanager
def refusing(happened: str) -> Iterator[None]:
    """Turn an exception of a package's model into a UsageError: its traceback tells the user nothing."""
    try:
        yield
    except FlopwatchError:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(happened, seen=f"{type(error).__name__}: {first}") from error


def builder(name: str) -> tuple[str, Callable[[], Made]]:
    """The framework of a named model and a function that builds it; raises UsageError with the nearest names."""
    room, separator, inner = name.partition(":")
    if room == "chainer":
        _check(inner, CHAINER, prefix="chainer:")
        return "chainer", lambda: _from_chainer(inner)
    if not separator or room in ("torchvision", "timm"):
        room, inner = home(name)
        return "torch", partial(_from_torchvision if room == "torchvision" else _from_timm, inner)
    raise UsageError(
        f"{name!r} is not a model.", todo="Write a name, chainer:NAME, torchvision:NAME, timm:NAME, or FILE.py:FACTORY."
    )


def home(name: str) -> tuple[str, str]:
    """The package, torchvision or timm, that has a model of that name, and its name there; raises UsageError with the nearest names."""
    room, separator, inner = name.partition(":")
    if separator and room in ("torchvision", "timm"):
        _require(room)
        _check(inner, _names(room), prefix=f"{room}:")
        return room, inner
    known: list[str] = []
    for room in ("torchvision", "timm"):
        if find_spec(room) is not None:
            names = _names(room)
            if name in names:
                return room, name
            known += names
    if not known:
        _require("torchvision")
    _check(name, known)
    raise AssertionError(name)


def _names(room: str) -> list[str]:
    if room == "torchvision":
        return list(import_module("torchvision.models").list_models())
    return list(import_module("timm").list_models())


def _require(package: str) -> None:
    if find_spec(package) is None:
        extra = "'flopwatch[torch]'" if package == "torchvision" else package
        raise UsageError(f"{package} is not installed.", todo=f"Install it: pip install {extra}.")


def _check(name: str, known: Sequence[str] | dict[str, str], *, prefix: str = "") -> None:
    if name not in known:
        raise UsageError(f"There is no model named {prefix + name!r}.", todo=suggestion(name, list(known), prefix))


def suggestion(name: str, known: Sequence[str], prefix: str = "") -> str:
    """A sentence that offers the nearest of the known names."""
    lowered = {each.lower(): each for each in known}
    near = [lowered[each] for each in difflib.get_close_matches(name.lower(), list(lowered), n=5, cutoff=0.5)]
    if near:
        return f"Did you mean {' or '.join(prefix + each for each in near)}?"
    if len(known) <= 10:
        return f"Known are: {', '.join(prefix + each for each in known)}."
    return "Nothing has a similar name. A model of your own is named FILE.py:FACTORY."


def _from_torchvision(name: str) -> Made:
    models = import_module("torchvision.models")
    home = models.get_model_builder(name).__module__
    shape, listed = next(found for place, found in _TORCHVISION.items() if home.startswith(place))
    # Weights would be downloaded; what is computed does not depend on them.
    options = {"weights": None}
    if listed or "segmentation" in home:
        options["weights_backbone"] = None
    model = models.get_model(name, **options)
    crop = _crop(models, name)
    shapes: tuple[Shape, ...] = (parse_shape(f"1x3x{crop}x{crop}" if crop else shape),)
    if "optical_flow" in home:
        shapes = (parse_shape("1x3x520x960"),) * 2
    return Made(model, shapes=shapes, listed=listed)


def _crop(models: Any, name: str) -> int | None:
    """The side of the images that a classifier was trained for, the smallest if there are weights for several; None for others."""
    crops = [getattr(weights.transforms, "keywords", {}).get("crop_size") for weights in models.get_model_weights(name)]
    return min((crop for crop in crops if isinstance(crop, int)), default=None)


def _from_timm(name: str) -> Made:
    model = import_module("timm").create_model(name, pretrained=False)
    channels, height, width = model.default_cfg["input_size"]
    return Made(model, shapes=(parse_shape(f"1x{channels}x{height}x{width}"),))


def _from_chainer(name: str) -> Made:
    from flopwatch.frameworks.chainer.compat import load

    links = load().links
    return Made(getattr(links, CHAINER[name])(pretrained_model=None), shapes=(parse_shape("1x3x224x224"),))
