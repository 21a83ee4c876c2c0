"""What is asked for, and the model and inputs that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from flopwatch.errors import UsageError
from flopwatch.subjects.model import catalogue, files, huggingface, inputs
from flopwatch.subjects.model.randomness import seeded

Phase = Literal["prefill", "decode"]
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class Request:
    """A model by name ("resnet18", "timm:…", "chainer:googlenet"), as "FILE.py:factory" or as the folder of a config.json, and its food.

    `shapes` overrules the model's own input ("1x3x224x224", one for each argument); `batch` replaces the first dimension;
    `dtype` is fp64, fp32, bf16 or fp16 (default: what a config.json says, else fp32); `image` a file, or "skimage:coffee" for a
    picture that scikit-image brings along. For a model of language by its config.json, `sequence` is its number of tokens, and
    `phase` "prefill" (all of them at once, into an empty cache) or "decode" (one more for each sequence, that many in the cache).
    `dims` are sizes that a model file leaves open, by their names.
    """

    name: str
    shapes: tuple[str, ...] = ()
    batch: int | None = None
    dtype: str | None = None
    image: str | None = None
    seed: int = 0
    sequence: int | None = None
    phase: Phase | None = None
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSubject:
    """A model with the arguments of one call, `kwargs` by name; `source` says in words what the model is fed.

    `tokens` are those that one call handles, 0 for a model that takes none or if nobody knows; `notes` belong into the record.
    A model without weights can have a `rebuild`, which makes it again with weights.
    """

    name: str
    framework: str
    model: Any
    arguments: tuple[Any, ...]
    source: str
    dtype: str = "fp32"
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0
    notes: tuple[str, ...] = ()
    rebuild: Callable[[], ModelSubject] | None = None

    def real(self) -> ModelSubject:
        """The same with weights and inputs that can be computed with."""
        return self if self.rebuild is None else self.rebuild()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """What to run the model in: an exception of the user's own code is shown as such, one of a package's model is a sentence."""
        with ExitStack() as stack:
            if is_file(self.name):
                stack.enter_context(files.shown_as_the_users(f"{self.name} raised while it ran on {self.source}:"))
            else:
                stack.enter_context(catalogue.refusing(f"{self.name} cannot run on {self.source}, {self.dtype}."))
                if huggingface.is_config(self.name):
                    stack.enter_context(huggingface.offline())
            yield


def find(request: Request, *, empty: bool = False) -> ModelSubject:
    """Build the model and its inputs, with weights and inputs from seeded random numbers; global generators stay as they were.

    With `empty` a PyTorch model is built on the meta device, if it can be: it takes no memory, and `rebuild` makes a real one.
    Raises UsageError for what does not exist or does not fit together, ModelRaisedError if the user's own code raised.
    """
    if request.dtype not in (None, *inputs.DTYPES):
        raise UsageError(
            f"There is no dtype {request.dtype!r} for models.", todo=f"Choose one of: {', '.join(inputs.DTYPES)}."
        )
    if request.batch is not None and request.batch < 1:
        raise UsageError(f"A batch cannot have {request.batch} images.", todo="Give a number from 1 on.")
    if request.sequence is not None and request.sequence < 1:
        raise UsageError(f"A sequence cannot have {request.sequence} tokens.", todo="Give a number from 1 on.")
    if request.phase not in (None, *PHASES):
        raise UsageError(f"There is no phase {request.phase!r}.", todo=f"Choose one of: {', '.join(PHASES)}.")
    shapes = tuple(inputs.parse_shape(text) for text in request.shapes)
    image = inputs.locate_image(request.image) if request.image is not None else None
    framework, build = _builder(request, shapes, empty=empty)
    _load(framework)
    with seeded(request.seed):
        made, hollow = _made(build, empty=empty and framework == "torch")
        framework = framework or files.framework_of(made.model)
        model = made.model
        dtype = made.dtype or request.dtype or "fp32"
        if framework == "torch":
            model = model if made.dtype else inputs.cast(model, dtype)
        elif dtype != "fp32":
            raise UsageError("Chainer models are measured in fp32 only.", todo="Leave --dtype out.")
        with inputs.on_meta() if hollow else nullcontext():
            arguments, source = _arguments(request, made, framework, shapes, image)
    return ModelSubject(
        request.name,
        framework,
        model,
        arguments,
        source,
        dtype,
        kwargs=made.kwargs,
        tokens=made.tokens,
        notes=made.notes,
        rebuild=partial(find, request) if hollow else None,
    )


def _made(build: Callable[[], catalogue.Made], *, empty: bool) -> tuple[catalogue.Made, bool]:
    """The model, and whether it is on the meta device."""
    if not empty:
        return build(), False
    try:
        with inputs.on_meta():
            return build(), True
    except UsageError:
        raise
    except Exception:  # it computes with its weights while it is built
        return build(), False


def _arguments(
    request: Request, made: catalogue.Made, framework: str, shapes: tuple[inputs.Shape, ...], image: Path | None
) -> tuple[tuple[Any, ...], str]:
    if made.arguments is not None and made.source:
        return made.arguments, made.source
    if made.arguments is not None and not shapes and image is None:
        if request.batch is not None:
            raise UsageError(
                f"{request.name} brings its own arguments, so the batch is its own too.",
                todo="Leave --batch out, or give --input.",
            )
        return made.arguments, "arguments from the factory"
    wanted = shapes or made.shapes
    if not wanted:
        raise UsageError(
            f"{request.name} does not say what its input looks like.",
            todo="Give --input (for example 1x3x224x224), or return the model together with its arguments.",
        )
    wanted = tuple(shape.with_batch(request.batch) for shape in wanted)
    with catalogue.refusing(f"There can be no input of {', '.join(map(str, wanted))}."):
        arguments = inputs.make(
            wanted, framework=framework, dtype=request.dtype or "fp32", image=image, listed=made.listed
        )
    source = inputs.describe(image) if image else f"random (seed {request.seed})"
    return arguments, f"{', '.join(map(str, wanted))}, {source}"


def is_file(name: str) -> bool:
    """Whether a model's name stands for a file of the user's."""
    return name.endswith(".py") or name.rpartition(":")[0].endswith(".py")


def _builder(
    request: Request, shapes: tuple[inputs.Shape, ...], *, empty: bool
) -> tuple[str, Callable[[], catalogue.Made]]:
    name = request.name
    configured = not is_file(name) and huggingface.is_config(name)
    if configured and request.image is not None:
        raise UsageError(f"{name} is built without weights and sees nothing in a picture.", todo="Leave --image out.")
    if not configured and (request.sequence is not None or request.phase is not None):
        raise UsageError(
            f"Tokens of {name} cannot be chosen by number or phase.",
            todo="That is for models by their config.json; give --input, such as 1x128:int64.",
        )
    if configured:
        return huggingface.builder(request, shapes, empty=empty)
    path, separator, factory = name.rpartition(":")
    if is_file(name):
        return files.builder(
            path if separator and path.endswith(".py") else name, factory if path.endswith(".py") else ""
        )
    return catalogue.builder(name)


def _load(framework: str) -> None:
    """Load a framework before its random numbers are seeded; of a file's framework nothing is known yet."""
    if framework == "chainer":
        from flopwatch.frameworks.chainer.compat import load

        load()
    elif find_spec("torch") is not None:
        import_module("torch")
    elif framework:
        raise UsageError("PyTorch is not installed.", todo="Install it: pip install 'flopwatch[torch]'.")
