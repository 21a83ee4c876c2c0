"""Twins of tensors without data, and a model that holds them in the place of its own for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.jit import ScriptModule
from torch.optim import Optimizer
from torch.utils import _pytree

# Real integers of at most so many elements are computed with: positions, masks and lengths, on which a model may branch.
SMALL = 1 << 20

SPARSE = "only data tells how many elements a sparse tensor holds"


class NeedsDataError(RuntimeError):
    """The program asks for the content of a tensor that has none."""


Make = Callable[[torch.Tensor], torch.Tensor]


class Twins:
    """A twin for each tensor, the same one for the same tensor, with its shape, strides, datatype and wish for a gradient."""

    def __init__(self, make: Make) -> None:
        self._make = make
        # The original is held too: while it lives nobody else has its number.
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The twin; a parameter's is a parameter."""
        found = self._made.get(id(tensor))
        if found is None:
            with torch.inference_mode(False):  # one that can have a gradient, whoever asks
                found = self._made[id(tensor)] = (tensor, self._twin(tensor))
        return found[1]

    def keep(self, tensors: Iterable[torch.Tensor]) -> None:
        """Let tensors be their own twins."""
        self._made.update((id(tensor), (tensor, tensor)) for tensor in tensors)

    def _twin(self, tensor: torch.Tensor) -> torch.Tensor:
        twin = self._make(tensor)
        if twin is tensor:
            return tensor
        if isinstance(tensor, nn.Parameter):
            twin = nn.Parameter(twin, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad:
            twin.requires_grad_()
        twin.__dict__.update(tensor.__dict__)
        _hook_alike(twin, tensor)
        return twin

    @property
    def all(self) -> tuple[torch.Tensor, ...]:
        """All twins that were made."""
        return tuple(twin for _, twin in self._made.values())


def checked(tensor: torch.Tensor) -> None:
    """NeedsDataError if a tensor without data cannot stand for this one."""
    if tensor.layout is not torch.strided:
        raise NeedsDataError(SPARSE)


def _hook_alike(twin: torch.Tensor, tensor: torch.Tensor) -> None:
    """Whatever the user has done to gradients of a leaf is done to those of its twin."""
    if twin.requires_grad and tensor.is_leaf:
        for hook in (tensor._backward_hooks or {}).values():
            twin.register_hook(hook)  # type: ignore[no-untyped-call]  # PyTorch left it untyped
        for hook in (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values():
            twin.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]  # as above


def meta_of(tensor: torch.Tensor) -> torch.Tensor:
    """An empty tensor like this one on the meta device; raises what PyTorch raises for one that cannot be there."""
    checked(tensor)
    if tensor.layout is torch.strided and type(tensor) in (torch.Tensor, nn.Parameter, nn.Buffer):
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.detach().to("meta")


def arguments_of(tree: Any, twins: Twins, *, keep: bool) -> Any:
    """The arguments of a call with twins in the place of tensors; with `keep` small integers on a CPU stay as they are."""

    def replaced(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or (keep and stays(leaf)):
            return leaf
        return twins.of(leaf)

    return _pytree.tree_map(replaced, tree)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """All tensors in nested arguments."""
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def stays(tensor: torch.Tensor) -> bool:
    """Whether a tensor is worth computing with: small integers."""
    return (
        not (tensor.is_floating_point() or tensor.is_complex())
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.numel() <= SMALL
    )


@contextmanager
def replaced(model: nn.Module, twins: Twins) -> Iterator[None]:
    """Give a model twins of its parameters and buffers, also where lists and attributes of modules hold them, and take them back."""
    undo: list[Callable[[], None]] = []
    try:
        for module in model.modules():
            if isinstance(module, ScriptModule):
                _replace_scripted(module, twins, undo)
            else:
                _replace_held(module, twins, undo)
        yield
    finally:
        for each in reversed(undo):
            each()


@contextmanager
def optimizing(optimizers: Iterable[Optimizer], twins: Twins) -> Iterator[None]:
    """Let optimizers step on the twins of their parameters, with twins of their states, and take theirs back."""
    undo: list[Callable[[], None]] = []
    try:
        for optimizer in optimizers:
            # All of it: a schedule of learning rates writes to groups, and to the optimizer itself.
            undo.append(_restoring(vars(optimizer)))
            for group in optimizer.param_groups:
                undo.append(_restoring(group))
                group["params"] = [twins.of(parameter) for parameter in group["params"]]
            state: defaultdict[torch.Tensor, Any] = defaultdict(dict)
            for parameter, values in optimizer.state.items():
                state[twins.of(parameter)] = {name: _twin_of_state(value, twins) for name, value in values.items()}
            optimizer.state = state
        yield
    finally:
        for each in reversed(undo):
            each()


def _twin_of_state(value: Any, twins: Twins) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return twins.of(value) if value.dim() else value.clone()  # numbers of steps are computed with


def _replace_held(module: nn.Module, twins: Twins, undo: list[Callable[[], None]]) -> None:
    for holder in (module._parameters, module._buffers):
        _replace_values(holder, twins, undo)
    own = {id(tensor) for tensor in _tensors(module)}
    for name, value in vars(module).items():
        # Parameters that are held once more, as recurrent layers do.
        if isinstance(value, list) and any(isinstance(each, nn.Parameter) for each in value):
            undo.append(_putting(vars(module), name, value))
            vars(module)[name] = [twins.of(each) if isinstance(each, nn.Parameter) else each for each in value]
        elif isinstance(value, torch.Tensor) and id(value) in own:
            undo.append(_putting(vars(module), name, value))
            vars(module)[name] = twins.of(value)


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    held = (*module._parameters.values(), *module._buffers.values())
    return [tensor for tensor in held if tensor is not None]


def _restoring(holder: MutableMapping[str, Any]) -> Callable[[], None]:
    before = dict(holder)

    def restore() -> None:
        holder.clear()
        holder.update(before)

    return restore


def _replace_values(holder: MutableMapping[str, Any], twins: Twins, undo: list[Callable[[], None]]) -> None:
    undo.append(_restoring(holder))
    for name, tensor in list(holder.items()):
        if tensor is not None:
            holder[name] = twins.of(tensor)


def _putting(holder: MutableMapping[str, Any], name: str, value: Any) -> Callable[[], None]:
    def put() -> None:
        holder[name] = value

    return put


def _replace_scripted(module: ScriptModule, twins: Twins, undo: list[Callable[[], None]]) -> None:
    inner = module._c
    for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):

        def put(name: str = name, tensor: torch.Tensor = tensor) -> None:
            inner.setattr(name, tensor)

        undo.append(put)
        inner.setattr(name, twins.of(tensor))
