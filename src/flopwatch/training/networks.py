"""Classifiers of torchvision and timm by name, with a head as wide as wanted, and weights from a file or from their authors."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.subjects.model.catalogue import home, refusing

IMAGENET = 1000


def require(*packages: str) -> None:
    """Raise UsageError for the first of these packages that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise UsageError(f"{package} is not installed.", todo="Install it: pip install 'flopwatch[torch]'.")


def build(name: str, head: int) -> Any:
    """An untrained network with `head` outputs; its numbers come from the global generator.

    Raises UsageError for a name that nobody knows, with the nearest ones, and for a network that does not classify pictures.
    """
    room, inner = home(name)
    if room == "timm":
        with refusing(f"timm cannot build {name} with {head} classes."):
            return import_module("timm").create_model(inner, pretrained=False, num_classes=head)
    models = import_module("torchvision.models")
    _check_classifier(models, inner)
    # Inception and GoogLeNet would start with a slow random fill, and answer in training with three outputs instead of one.
    options = {"aux_logits": False, "init_weights": False} if inner in ("inception_v3", "googlenet") else {}
    with refusing(f"torchvision cannot build {name} with {head} classes."):
        return models.get_model(inner, weights=None, num_classes=head, **options)


def check(name: str) -> None:
    """Raise UsageError, as `build` does, without building anything."""
    room, inner = home(name)
    if room == "torchvision":
        _check_classifier(import_module("torchvision.models"), inner)


def _check_classifier(models: Any, inner: str) -> None:
    place = models.get_model_builder(inner).__module__.removeprefix("torchvision.models.")
    kind = place.partition(".")[0]
    if kind in ("detection", "segmentation", "video", "optical_flow", "quantization"):
        what = "is quantized: it cannot be trained" if kind == "quantization" else "does not classify pictures"
        raise UsageError(f"{inner} {what}.", todo="Name a classifier, such as resnet18.")


def published(name: str) -> dict[str, Any]:
    """The weights that the authors of a network published, for 1000 classes.

    Raises CannotMeasureError where they cannot be fetched.
    """
    room, inner = home(name)
    try:
        if room == "timm":
            model = import_module("timm").create_model(inner, pretrained=True)
        else:
            model = import_module("torchvision.models").get_model(inner, weights="DEFAULT")
    except (URLError, OSError) as error:
        raise CannotMeasureError(
            f"The weights of {name} cannot be fetched.",
            seen=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}.",
            todo="Give a file with --weights FILE.",
        ) from error
    except (RuntimeError, ValueError, KeyError) as error:
        raise UsageError(f"There are no published weights of {name}.", seen=f"{error}.") from error
    state: dict[str, Any] = model.state_dict()
    return state


@dataclass(frozen=True, slots=True)
class Look:
    """How a network's authors prepared pictures: mean and deviation of each colour (0 to 1); what `margin` is in a recipe, if known."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    margin: float | None = None
    interpolation: str = "bilinear"

    @property
    def note(self) -> str:
        """What is unusual about it; empty for the colours that nearly all networks take."""
        if self == Look(margin=self.margin):
            return ""
        return f"pictures prepared with mean {self.mean}, deviation {self.std}, {self.interpolation}"


def look_of(name: str) -> Look:
    """How pictures were prepared for the published weights of a network; timm knows, torchvision's are alike."""
    room, inner = home(name)
    if room != "timm":
        return Look()
    config = import_module("timm.models").get_pretrained_cfg(inner)
    if config is None:
        return Look()
    ways = ("bilinear", "bicubic", "nearest", "lanczos", "hamming", "box")
    way = config.interpolation if config.interpolation in ways else "bilinear"
    return Look(tuple(config.mean), tuple(config.std), 1 / config.crop_pct, way)


def read(path: Path) -> dict[str, Any]:
    """A state_dict from a file of PyTorch or safetensors, bare or below `state_dict`, `model` and the like.

    Nothing of the file is executed. Raises UsageError for one that cannot be read or holds no weights.
    """
    import torch

    if not path.is_file():
        raise UsageError(f"There is no file of weights {str(path)!r}.")
    try:
        if path.suffix == ".safetensors":
            found = import_module("safetensors.torch").load_file(str(path))
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise UsageError("safetensors is not installed.", todo="Install it: pip install safetensors.") from error
    except Exception as error:  # pickle, zip and torch each raise their own
        first = str(error).strip().partition("\n")[0][:200]
        raise UsageError(f"{str(path)!r} holds no weights that can be read.", seen=f"{first}.") from error
    for key in ("state_dict", "state_dict_ema", "model", "model_state_dict"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not any(isinstance(value, torch.Tensor) for value in found.values()):
        raise UsageError(f"{str(path)!r} holds no table of weights.", todo="Save model.state_dict().")
    return {str(name).removeprefix("module."): value for name, value in found.items()}


def load(model: Any, state: dict[str, Any], source: str, *, exact: bool) -> tuple[str, ...]:
    """Put weights into a network; without `exact` a head of another width stays as it was made. Notes on what was left out.

    Raises UsageError if the weights are those of another network, or with `exact`, of a head of another width.
    """
    wanted = model.state_dict()
    notes: tuple[str, ...] = ()
    if not wanted.keys() & state.keys() and _shapes(wanted) == _shapes(state):
        # Another implementation of the same network: other names, the same tensors in the same order.
        state = dict(zip(wanted, state.values(), strict=True))
        notes = (f"the weights in {source} have other names; they were taken in their order, in which all shapes fit",)
    missing = [name for name in wanted if name not in state and not name.endswith("num_batches_tracked")]
    # Auxiliary classifiers are left out of some networks; their weights have no place then.
    extra = [name for name in state if name not in wanted and "aux" not in name.lower()]
    other = [name for name in wanted if name in state and state[name].shape != wanted[name].shape]
    heads = [name for name in other if state[name].shape[1:] == wanted[name].shape[1:]]
    if missing or extra or len(heads) != len(other) or len(heads) > 2:
        odd = (missing or extra or other)[0]
        raise UsageError(f"The weights in {source} are those of another network.", seen=f"{odd!r} does not fit.")
    if heads and exact:
        raise UsageError(
            f"The weights in {source} tell {state[heads[0]].shape[0]} classes apart; the network has "
            f"{wanted[heads[0]].shape[0]}.",
            todo="Give the width of their head with --classes.",
        )
    kept = {name: value for name, value in state.items() if name in wanted and name not in heads}
    model.load_state_dict(kept, strict=False)
    head = (f"head not taken from {source}, which has another number of classes",) if heads else ()
    return (*notes, *head)


def _shapes(state: dict[str, Any]) -> list[tuple[int, ...]]:
    return [tuple(value.shape) for value in state.values()]
