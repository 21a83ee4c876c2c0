"""The cache of tokens that were seen before: made by a forward that nobody counts, and the same again for every call."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

# The names that models have for it: attention's (since 5.20 of transformers, and before), state spaces', RWKV's.
NAMES = ("cache", "past_key_values", "cache_params", "state")


def name_in(parameters: Mapping[str, Any]) -> str | None:
    """What a forward calls its cache, None if it takes none."""
    return next((name for name in NAMES if name in parameters), None)


def taken_from(output: Mapping[str, Any]) -> Any:
    """The cache that a forward gave back, None if it gave none."""
    return next((output[name] for name in NAMES if output.get(name) is not None), None)


@contextmanager
def filling(model: Any) -> Iterator[None]:
    """What to fill a cache in: without gradients, and on meta tensors followed as an estimate is, by nobody who counts."""
    import torch

    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if next(model.parameters()).is_meta:
            from flopwatch.frameworks.torch.tracing.unseen import unseen

            stack.enter_context(unseen(model))
        yield


def keep(model: Any, name: str) -> None:
    """Let each call of the model begin with the cache that it is given: calls add to it, so they get a copy (not of the tensors)."""

    def begin(module: Any, arguments: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return arguments, {**named, name: _copied(named[name])} if named.get(name) is not None else named

    model.register_forward_pre_hook(begin, with_kwargs=True)


def tensors(value: Any) -> Iterator[Any]:
    """All tensors of a cache."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors(each)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif _is_part(value):
        yield from tensors(list(vars(value).values()))


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    if _is_part(value):
        made = copy.copy(value)
        for name, each in vars(value).items():
            setattr(made, name, _copied(each))
        return made
    return value


def _is_part(value: Any) -> bool:
    """Whether it is a cache or a layer of one."""
    return any(each.__module__ == "transformers.cache_utils" for each in type(value).__mro__)
