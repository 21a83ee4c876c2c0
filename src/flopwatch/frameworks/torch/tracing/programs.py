"""What can be followed beside a module: plain functions, exported programs, modules in wrappers that split batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.jit import ScriptModule
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from flopwatch.errors import UsageError
from flopwatch.frameworks.torch.running import step_of
from flopwatch.frameworks.torch.tracing.twins import tensors_in
from flopwatch.subjects.model import ModelSubject
from flopwatch.subjects.model.inputs import DTYPES

_HIDDEN = ("prim::mkldnn_convolution", "prim::MKLDNNGroup")


class Called(nn.Module):
    """A plain function, with the modules that it holds as children, so that their layers have names.

    Optimizers, their schedules and scalers, and tensors with gradients that it holds are kept as well: to be seen to, and to be
    left as they were.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> None:
        super().__init__()
        self.function = function
        self.optimizers: list[Optimizer] = []
        self.tensors: list[torch.Tensor] = []
        self.schedules: list[LRScheduler | torch.amp.GradScaler] = []
        given = ((f"argument{i}", each) for i, each in enumerate(arguments))
        for name, value in (*held_by(function), *given):
            if isinstance(value, nn.Module) and name.replace(".", "_") not in self._modules:
                self._modules[name.replace(".", "_")] = value
            elif isinstance(value, Optimizer):
                self.optimizers.append(value)
            elif isinstance(value, (LRScheduler, torch.amp.GradScaler)):
                self.schedules.append(value)
            elif isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf:
                self.tensors.append(value)


def call_through(model: nn.Module) -> Callable[..., Any]:
    """What is to be called: wrappers that spread a batch over devices are left aside."""
    if isinstance(model, Called):
        return model.function
    if isinstance(model, (DataParallel, DistributedDataParallel)):
        inner: nn.Module = model.module
        return inner
    return model


def step_through(
    model: nn.Module, arguments: tuple[Any, ...], kwargs: Mapping[str, Any], *, train: bool
) -> Callable[[], None]:
    """One step of what is to be followed; a function is called as it is."""
    call = call_through(model)
    if isinstance(call, nn.Module):
        return step_of(call, arguments, kwargs, train=train)
    return step_of(model, arguments, kwargs, train=train, call=call)


def set_training(model: nn.Module, train: bool) -> None:
    """Put a model into the mode for training or inference, but for exported programs, which have one, and functions, which decide."""
    if isinstance(model, Called):
        return
    try:
        model.train(train)
    except NotImplementedError:
        return


def hidden_in(model: nn.Module) -> Iterator[str]:
    """Operators that scripted modules run where nobody who follows operators can see them: products on packed weights of oneDNN."""
    for module in model.modules():
        if isinstance(module, ScriptModule) and hasattr(module, "inlined_graph"):
            graph: Any = module.inlined_graph  # held, since its nodes are not without it
            for kind in _HIDDEN:
                yield from [kind] * len(graph.findAllNodes(kind))


def module_of(program: Any, arguments: tuple[Any, ...] = ()) -> nn.Module:
    """The module that stands for a program; UsageError for what cannot be called."""
    if isinstance(program, nn.Module):
        return program
    if isinstance(program, torch.export.ExportedProgram):
        return _unflattened(program)
    if callable(program):
        return Called(program, arguments)
    raise UsageError(
        "This can be neither run nor estimated.",
        seen=f"It is a {type(program).__name__}.",
        todo="Give a module, a function, an exported program, or the name of a model.",
    )


def _unflattened(program: torch.export.ExportedProgram) -> nn.Module:
    """An exported program with the layers that it was made from, where PyTorch can tell."""
    try:
        return torch.export.unflatten(program)
    except Exception:  # whatever is in there: it runs in one piece as well
        return program.module()


def subject_of(program: Any, arguments: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelSubject:
    """A program with the arguments of one call."""
    model = module_of(program, (*arguments, *kwargs.values()))
    name = getattr(program, "__qualname__", None) or type(getattr(program, "_orig_mod", program)).__name__
    return ModelSubject(
        name, "torch", model, arguments, _described((*arguments, *kwargs.values())), _dtype(model, arguments), kwargs
    )


def _dtype(model: nn.Module, arguments: tuple[Any, ...]) -> str:
    """The name of the datatype that a model has, or its arguments."""
    known = {dtype: name for name, dtype in DTYPES.items()}
    for tensor in (*model.parameters(), *tensors_in(arguments)):
        if tensor.is_floating_point():
            name = str(tensor.dtype).removeprefix("torch.")
            return known.get(name, name)
    return "no floating-point numbers"


def _described(values: tuple[Any, ...]) -> str:
    shapes = [_sizes(each) for each in tensors_in(values)]
    return f"input of {', '.join(shapes)}" if shapes else "arguments of its own"


def _sizes(tensor: torch.Tensor) -> str:
    if tensor.is_nested:
        return f"{tensor.size(0)} sequences"
    return "x".join(map(str, tensor.shape)) or "a number"


def held_by(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function holds, under a name: its object and what is in there, a closure, a partial, globals that it uses."""
    if isinstance(function, partial):
        held = {**{f"argument{i}": each for i, each in enumerate(function.args)}, **function.keywords}
        yield from _spread(held)
        yield from held_by(function.func)
        return
    owner = getattr(function, "__self__", None)
    if isinstance(owner, nn.Module):
        yield type(owner).__name__, owner
    elif owner is not None:
        yield from _spread(getattr(owner, "__dict__", {}))
    function = inspect.unwrap(getattr(function, "__func__", function))
    function = getattr(function, "_torchdynamo_orig_callable", function)
    if inspect.isfunction(function):
        found = inspect.getclosurevars(function)
        yield from _spread({**found.globals, **found.nonlocals})
    elif not inspect.isbuiltin(function):
        yield from _spread(getattr(function, "__dict__", {}))


def _spread(held: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in held.items():
        if isinstance(value, (list, tuple)):
            yield from ((f"{name}{i}", each) for i, each in enumerate(value))
        else:
            yield name, value
