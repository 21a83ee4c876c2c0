"""A config.json: read, checked, and turned into a configuration and a model class of the installed transformers."""

from __future__ import annotations

import difflib
import inspect
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.inputs import DTYPES

# What is tried for a config without `architectures`: the first mapping that knows the config. Encoders come before decoders,
# since BERT and its kin can be built as decoders, too.
_ENCODER_DECODERS = ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING")
_OTHERS = (
    "MODEL_FOR_MASKED_LM_MAPPING",
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "MODEL_MAPPING",
)

# Kernels that come in packages of their own are not needed to count: these two are PyTorch's.
_ATTENTION = ("sdpa", "eager")


def is_config(name: str) -> bool:
    """Whether a model's name stands for a config.json or its folder; what looks like a name at Hugging Face is meant as one, too."""
    path = Path(name)
    if name.endswith(".json") or (path / "config.json").is_file():
        return True
    return ":" not in name and os.sep in name and not path.is_file()


def locate(name: str) -> Path:
    """The config.json that a name stands for; raises UsageError."""
    path = Path(name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(
                f"The folder {name!r} has no config.json.", todo="Give the folder of a Hugging Face model."
            )
        return path / "config.json"
    if not path.is_file():
        raise UsageError(
            f"There is no file or folder {name!r}.",
            todo="Nothing is downloaded: give a local folder with a config.json, or the file itself.",
        )
    return path


def read(path: Path) -> dict[str, Any]:
    """The values in a config.json; raises UsageError if it is not JSON or does not say which type of model it is of."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"), object_hook=_number)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as JSON.", seen=f"{error}.") from error
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise UsageError(
            f"{path} does not say what it configures: it has no model_type.",
            todo='A Hugging Face config has one ("model_type": "llama"). Models of timm are named timm:NAME.',
        )
    return values


def _number(found: dict[str, Any]) -> Any:
    """What JSON has no word for is written {"__float__": "Infinity"}."""
    return float(found["__float__"]) if list(found) == ["__float__"] else found


def transformers() -> Any:
    """The package; raises UsageError if it, or PyTorch below it, is missing."""
    for package in ("transformers", "torch"):
        if find_spec(package) is None:
            raise UsageError(f"{package} is not installed.", todo="Install it: pip install 'flopwatch[huggingface]'.")
    return import_module("transformers")


@contextmanager
def offline() -> Iterator[None]:
    """Nothing of Hugging Face's reaches out to the network in here; afterwards all is as it was, environment variables too.

    What transformers says about kernels that it would rather have is left out as well.
    """
    logging = transformers().utils.logging
    constants: Any = import_module("huggingface_hub.constants")
    # Read once when the package is imported, so that the variables alone would come too late.
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    was, verbosity = constants.HF_HUB_OFFLINE, logging.get_verbosity()
    os.environ.update(dict.fromkeys(names, "1"))
    constants.HF_HUB_OFFLINE = True
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        constants.HF_HUB_OFFLINE = was
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def configuration(values: Mapping[str, Any], path: Path) -> Any:
    """The configuration object of transformers; raises UsageError for a type that the installed version does not know."""
    package = transformers()
    kind = values["model_type"]
    known = package.CONFIG_MAPPING
    if kind not in known:
        if "auto_map" in values:
            raise UsageError(
                f"{path} is for code of its own ({_own_code(values)}), which is not run.",
                seen=f"transformers {package.__version__} has no model type {kind!r}.",
                todo="Write a FILE.py:FACTORY that builds the model, if you trust that code.",
            )
        raise UsageError(
            f"{path} is of an unknown model type: {kind!r}.",
            seen=f"transformers {package.__version__} does not know it.",
            todo=_near(kind, list(known)),
        )
    # Backbones with weights would be downloaded.
    return known[kind].from_dict(_without_weights(values))


def model_class(config: Any, values: Mapping[str, Any], path: Path) -> Any:
    """The class that `architectures` names, else the one that fits; raises UsageError for an unknown one."""
    package = transformers()
    named = values.get("architectures") or ()
    if not named:
        return _fitting(config, path)
    name = named[0] if isinstance(named, list) else named
    found: Any = getattr(package, name, None) if isinstance(name, str) else None
    if not (inspect.isclass(found) and hasattr(found, "_from_config")):
        every = [each for each in dir(package) if each[0].isupper() and not each.endswith(("Config", "Processor"))]
        raise UsageError(
            f"{path} names an unknown architecture: {name!r}.",
            seen=f"transformers {package.__version__} has no such model.",
            todo=_near(str(name), every),
        )
    of: Any = getattr(found, "config_class", None)
    if of is not None and not isinstance(config, of):
        raise UsageError(
            f"{path} does not fit together: {name} wants a {of.__name__}.",
            seen=f"model_type {values['model_type']!r} is a {type(config).__name__}.",
        )
    return found


def datatype(config: Any) -> str:
    """The datatype that the configuration asks for, by flopwatch's name; fp32 if it asks for none or an unusual one."""
    wanted = str(getattr(config, "dtype", None)).removeprefix("torch.")
    return next((name for name, of in DTYPES.items() if of == wanted), "fp32")


def attention(values: Mapping[str, Any]) -> tuple[str | None, str]:
    """Which implementation of attention the file asks for, if it is one of PyTorch's own, and a note if it is not."""
    wanted = values.get("attn_implementation", values.get("_attn_implementation"))
    if wanted is None or wanted in _ATTENTION:
        return wanted, ""
    return "sdpa", f"counted with attention by PyTorch (sdpa) instead of {wanted}"


def _fitting(config: Any, path: Path) -> Any:
    package = transformers()
    for name in (*(_ENCODER_DECODERS if getattr(config, "is_encoder_decoder", False) else ()), *_OTHERS):
        mapping = getattr(package, name, {})
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise UsageError(
        f"{path} names no architecture, and none fits a {type(config).__name__}.",
        todo='Add one to it: "architectures": ["…"].',
    )


def _without_weights(values: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in values.items():
        if name == "use_pretrained_backbone":
            value = False
        made[name] = _without_weights(value) if isinstance(value, dict) else value
    return made


def _own_code(values: Mapping[str, Any]) -> str:
    owned = values["auto_map"]
    return ", ".join(map(str, owned.values())) if isinstance(owned, dict) else str(owned)


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else "Nothing has a similar name; a newer version may know it."
