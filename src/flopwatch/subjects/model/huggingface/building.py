"""A model from a config.json, with the arguments of one forward: on meta, where it takes no memory, or with random weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.catalogue import Made, refusing
from flopwatch.subjects.model.huggingface import caching, config, feeding, memory
from flopwatch.subjects.model.inputs import DTYPES, Shape

if TYPE_CHECKING:
    from flopwatch.subjects.model.request import Request

# Token numbers that are worth their memory.
_FEW = 1 << 20


def builder(request: Request, shapes: tuple[Shape, ...], *, empty: bool) -> tuple[str, Callable[[], Made]]:
    """The framework, and a function that builds model and arguments; raises UsageError for a file that cannot be understood."""
    path = config.locate(request.name)
    values = config.read(path)
    package = config.transformers()

    def build() -> Made:
        with config.offline(), refusing(f"transformers {package.__version__} cannot build a model from {path}."):
            configuration = config.configuration(values, path)
            made = config.model_class(configuration, values, path)
            implementation, note = config.attention(values)
            options = {} if implementation is None else {"attn_implementation": implementation}
            dtype = request.dtype or config.datatype(configuration)
            model = _built(made, configuration, dtype, options, device="meta")
            if not empty:
                memory.check(model)
                model = _built(made, configuration, dtype, options, device="cpu")
        notes = [f"{type(model).__name__} of transformers {package.__version__}, built from {path} without its weights"]
        notes += _about(values)
        notes += [note] if note else []
        with config.offline():
            return replace(_fed(model, request, shapes, dtype, notes), dtype=dtype)

    return "torch", build


def _built(made: Any, configuration: Any, dtype: str, options: dict[str, Any], *, device: str) -> Any:
    import torch

    with torch.device(device):
        # The configuration is written to while a model is built.
        model = made._from_config(deepcopy(configuration), dtype=getattr(torch, DTYPES[dtype]), **options)
    return model.eval()


def _about(values: dict[str, Any]) -> list[str]:
    notes = []
    if "auto_map" in values:
        notes.append(
            "the config names code of its own (auto_map); it was not run, the class of transformers stands for it"
        )
    if values.get("quantization_config"):
        notes.append("the config's quantization is not applied: products are counted in the datatype asked for")
    return notes


def _fed(model: Any, request: Request, shapes: tuple[Shape, ...], dtype: str, notes: list[str]) -> Made:
    import torch

    device = next(model.parameters()).device
    taken = inspect.signature(model.forward).parameters
    cache = caching.name_in(taken) if model.can_generate() else None
    if request.phase == "decode" and cache is None:
        raise UsageError(
            f"{type(model).__name__} has no decode phase: it does not write token by token.",
            todo="Leave --decode out.",
        )
    following = int(request.phase == "decode")
    wanted = feeding.inputs(model, taken, shapes, request.batch or 1, request.sequence, room=following)
    last = next((each for each in reversed(wanted) if each.shape.integer), None)
    source = ", ".join(map(str, wanted))
    if request.sequence and last is None and wanted[0].name != "input_values":
        raise UsageError(
            f"{type(model).__name__} takes no tokens.", seen=f"It takes {source}.", todo="Leave --sequence out."
        )
    numbers = getattr(torch, DTYPES[dtype])
    named: dict[str, Any] = {each.name: _tensor(each.shape, numbers, device) for each in wanted}
    named |= {name: torch.ones(sizes, dtype=torch.int64, device="cpu") for name, sizes in feeding.masks(taken, wanted)}
    if cache is not None:
        named["use_cache"] = True
    if feeding.PICTURE in taken and feeding.PICTURE not in named:
        notes.append("it is fed words only, no picture")
    if last is None:
        return Made(model, (), kwargs=named, source=source, notes=tuple(notes))
    batch, length = last.shape.sizes
    feeding.check_positions(model, length + following)
    if cache is not None and following:
        return _decoding(model, named, cache, last, notes)
    if cache is not None:
        notes += _head(model, batch * (length - 1))
    if request.phase and cache is not None:
        source += " (prefill, fills a cache)"
    return Made(model, (), kwargs=named, source=source, notes=tuple(notes), tokens=batch * length)


def _decoding(model: Any, named: dict[str, Any], cache: str, last: feeding.Input, notes: list[str]) -> Made:
    """One more token for each sequence, after a prefill that is not counted."""
    import torch

    batch, length = last.shape.sizes
    with refusing(f"{type(model).__name__} cannot take {last} at once to fill its cache."), caching.filling(model):
        output = model(**named)
    filled = caching.taken_from(output)
    if filled is None:
        raise UsageError(f"{type(model).__name__} gives no cache back, so that it cannot decode token by token.")
    step: dict[str, Any] = {last.name: named[last.name][:, -1:].clone(), cache: filled, "use_cache": True}
    if feeding.DECODED_MASK in named:
        step[feeding.DECODED_MASK] = torch.ones((batch, length + 1), dtype=torch.int64, device="cpu")
    if output.get("encoder_last_hidden_state") is not None:
        outputs = config.transformers().modeling_outputs
        step["encoder_outputs"] = outputs.BaseModelOutput(last_hidden_state=output["encoder_last_hidden_state"])
        notes.append("the encoder ran before and is not counted")
    caching.keep(model, cache)
    size = sum(each.numel() * each.element_size() for each in caching.tensors(filled))
    notes.append(f"the cache of {batch} x {length} tokens takes {size:,} bytes; filling it is not counted")
    source = f"{last.name} {batch}x1:int64 after {length} tokens in a cache"
    return Made(model, (), kwargs=step, source=source, notes=tuple(notes), tokens=batch)


def _head(model: Any, others: int) -> list[str]:
    """What the scores of all tokens but the last cost, which only training needs: generate() leaves them out."""
    head = model.get_output_embeddings()
    if head is None or not others:
        return []
    mac = others * head.weight.numel()
    return [
        f"scores of every token are computed, as forward() does; generate() asks for the last token's: {mac:,} MAC less"
    ]


def _tensor(shape: Shape, dtype: Any, device: Any) -> Any:
    import torch

    if shape.integer:
        # Token numbers have values even where nothing else has: some models look at them.
        few = prod(shape.sizes) <= _FEW
        return torch.randint(0, 2, shape.sizes, device="cpu" if few else device)
    return torch.randn(shape.sizes, device=device).to(dtype)
