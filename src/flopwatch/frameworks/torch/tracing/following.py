"""The ways in which a model can be followed, tried in turn: on meta tensors, on fake ones, for real."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.jit import ScriptModule
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.utils._python_dispatch import _disable_current_modes

from flopwatch.errors import FlopwatchError, UsageError
from flopwatch.events import Op
from flopwatch.frameworks import Part, Traced
from flopwatch.frameworks.torch.tracing.hooks import FollowingHooks
from flopwatch.frameworks.torch.tracing.kernels import attention_as_on_cpu
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.meta import FollowingMeta
from flopwatch.frameworks.torch.tracing.mode import Following
from flopwatch.frameworks.torch.tracing.programs import Called, set_training, step_through
from flopwatch.frameworks.torch.tracing.twins import (
    NeedsDataError,
    Twins,
    arguments_of,
    meta_of,
    optimizing,
    replaced,
    tensors_in,
)
from flopwatch.frameworks.torch.untouched import untouched
from flopwatch.subjects.model import ModelSubject
from flopwatch.subjects.model.randomness import RandomStates

Emit = Callable[[Op], None]

_SMALL = 1 << 28
_WANTS_CUDA = ("with CUDA enabled", "NVIDIA driver", "CUDA GPU", "CUDA driver", "CUDA device", "CUDA is not available")

# One thread at a time: models may be shared, and observers are. Whoever has waited for so long goes on without them.
_turn = threading.RLock()
_PATIENCE = 60.0


class Found(NamedTuple):
    """What was met on the way."""

    ops: list[Op]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    activations: Activations


def trace(subject: ModelSubject, emit: Emit, *, train: bool) -> Traced:
    """Run the model once and emit each operator that it calls, in its place; the model is as it was found afterwards.

    Meta tensors are tried first, then fake ones, and where the program needs to look at its data it is run on them. An exception
    of the model's own comes through as it is.
    """
    alone = _turn.acquire(timeout=_PATIENCE)
    try:
        found, how = _found(subject, train)
    finally:
        if alone:
            _turn.release()
    for op in found.ops:
        emit(op)
    model = subject.model
    return Traced(
        found.parts,
        how,
        found.notes,
        found.activations.peak,
        found.activations.at,
        _bytes(model.parameters()),
        _bytes(model.buffers()),
    )


def _found(subject: ModelSubject, train: bool) -> tuple[Found, str]:
    _check(subject)
    ways: list[tuple[str, Callable[[ModelSubject, bool], Found]]] = [("meta", on_meta), ("fake", on_fake)]
    if train and any(isinstance(module, nn.RNNBase) for module in subject.model.modules()):
        ways.reverse()  # a CPU takes the steps of recurrent layers together, of whose gradients the sums differ
    first: Exception | None = None
    for name, follow in ways:
        try:
            return follow(subject, train), f"on {name} tensors: nothing was computed"
        except FlopwatchError:
            raise
        except Exception as error:
            if first is not None and _said(error) == _said(first) and not _is_small(subject.model):
                raise _as_seen(first, subject) from first  # the model's own error, most likely
            first = first or error
            if _asks_for_data(error):
                break
    assert first is not None
    if any(tensor.is_meta for tensor in subject.model.parameters()) and subject.rebuild is None:
        raise _as_seen(first, subject) from first
    try:
        return for_real(subject.real(), train), f"by a real run, since {_reason(first)}"
    except FlopwatchError:
        raise
    except Exception as error:
        raise _as_seen(error, subject) from error


def _check(subject: ModelSubject) -> None:
    if any(isinstance(each, (UninitializedParameter, UninitializedBuffer)) for each in subject.model.parameters()):
        raise UsageError(
            f"{subject.name} has parameters whose shapes are not known yet.",
            todo="Run it once on an input, so that its lazy modules are initialized.",
        )


def on_meta(subject: ModelSubject, train: bool) -> Found:
    """Follow it on the meta device; raises what the program raises there."""
    twins = Twins(meta_of)
    with attention_as_on_cpu():
        return _with_twins(subject, train, twins, FollowingMeta, nullcontext(), keep=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Fake tensors log what goes wrong with them; here that is expected, and whoever has to know is told otherwise."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def on_fake(subject: ModelSubject, train: bool) -> Found:
    """Follow it on tensors that pretend to be on a CPU, or where its tensors are; raises what the program raises with them."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)

    def twin(tensor: torch.Tensor) -> torch.Tensor:
        device = "cpu" if tensor.is_meta else tensor.device
        with fake:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)

    with _quiet():
        return _with_twins(subject, train, Twins(twin), Following, fake, keep=False)


def _with_twins(
    subject: ModelSubject,
    train: bool,
    twins: Twins,
    following: type[Following],
    around: AbstractContextManager[Any],
    *,
    keep: bool,
) -> Found:
    model: nn.Module = subject.model
    optimizers = model.optimizers if isinstance(model, Called) else ()
    with _kept(model), replaced(model, twins), optimizing(optimizers, twins):
        set_training(model, train)
        arguments, kwargs = arguments_of((tuple(subject.arguments), dict(subject.kwargs)), twins, keep=keep)
        return _run(model, arguments, kwargs, train, following, Activations(twins.all), around)


def for_real(subject: ModelSubject, train: bool) -> Found:
    """Follow it while it computes."""
    model: nn.Module = subject.model
    arguments, kwargs = tuple(subject.arguments), dict(subject.kwargs)
    with ExitStack() as stack:
        stack.enter_context(_kept(model))
        if isinstance(model, Called):  # it may do anything: it gets copies
            copies = Twins(lambda tensor: tensor.detach().clone())
            stack.enter_context(replaced(model, copies))
            stack.enter_context(optimizing(model.optimizers, copies))
        else:
            stack.enter_context(untouched(model, training=train))
        set_training(model, train)
        known = Activations([*model.parameters(), *model.buffers(), *tensors_in((arguments, kwargs))])
        return _run(model, arguments, kwargs, train, Following, known, nullcontext())


def _run(
    model: nn.Module,
    arguments: tuple[Any, ...],
    kwargs: dict[str, Any],
    train: bool,
    following: type[Following],
    activations: Activations,
    around: AbstractContextManager[Any],
) -> Found:
    ops: list[Op] = []
    hooks = FollowingHooks(model)
    step = step_through(model, arguments, kwargs, train=train)
    with ExitStack() as stack:
        stack.enter_context(_disable_current_modes())  # of whoever asks: they are not to see what we do
        if not isinstance(model, Called):
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
        stack.enter_context(_uncompiled())
        stack.enter_context(hooks)
        stack.enter_context(around)
        stack.enter_context(following(ops.append, hooks, activations))
        step()
    parts = hooks.parts[1:] if isinstance(model, Called) else hooks.parts
    return Found(ops, parts, hooks.notes, activations)


@contextmanager
def _kept(model: nn.Module) -> Iterator[None]:
    """Leave the attributes of modules, training flags among them, and random numbers as they were."""
    attributes = [(vars(module), dict(vars(module))) for module in model.modules()]
    flags = [
        (module, module.training)
        for module in model.modules()
        if isinstance(module, ScriptModule) and hasattr(module, "training")
    ]
    gradients = [(tensor, tensor.grad) for tensor in model.tensors] if isinstance(model, Called) else []
    states = RandomStates()
    try:
        yield
    finally:
        states.restore()
        for tensor, gradient in gradients:
            tensor.grad = gradient
        for module, flag in flags:
            if module.training is not flag:
                module.training = flag
        for now, before in attributes:
            if list(now) != list(before) or any(now[name] is not value for name, value in before.items()):
                now.clear()
                now.update(before)


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Run what was compiled as if it had not been: whoever has compiled anything has loaded the compiler."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _asks_for_data(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, NeedsDataError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_small(model: nn.Module) -> bool:
    """Whether a real run is cheap enough to hear the model's own words."""
    return sum(parameter.numel() for parameter in model.parameters()) <= _SMALL


def _said(error: Exception) -> tuple[type, str]:
    return type(error), str(error)


def _reason(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return first if isinstance(error, NeedsDataError) else f"no tensors without data would do ({first})"


def _as_seen(error: Exception, subject: ModelSubject) -> Exception:
    """The error as it is, but for a model that wants a device which is not here."""
    said = str(error)
    if any(each in said for each in _WANTS_CUDA) and not torch.cuda.is_available():
        return UsageError(
            f"{subject.name} needs CUDA, which is not to be had here.",
            seen=said.partition("\n")[0],
            todo="Let it take the device of its input instead of naming one.",
        )
    return error


def _bytes(tensors: Iterator[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
