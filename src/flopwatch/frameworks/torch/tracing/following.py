"""The ways in which a model can be followed, tried in turn: on meta tensors, on fake ones, for real."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from flopwatch.errors import FlopwatchError, UsageError
from flopwatch.events import Op
from flopwatch.frameworks import Part, Traced
from flopwatch.frameworks.torch.tracing.hooks import FollowingHooks
from flopwatch.frameworks.torch.tracing.keeping import asked_alone, kept
from flopwatch.frameworks.torch.tracing.kernels import attention_as_on_cpu
from flopwatch.frameworks.torch.tracing.memory import Activations
from flopwatch.frameworks.torch.tracing.meta import FollowingMeta
from flopwatch.frameworks.torch.tracing.mode import Following, wants_gradients
from flopwatch.frameworks.torch.tracing.programs import Called, call_through, hidden_in, set_training, step_through
from flopwatch.frameworks.torch.tracing.twins import (
    NeedsDataError,
    Twins,
    arguments_of,
    checked,
    meta_of,
    optimizing,
    replaced,
    tensors_in,
)
from flopwatch.frameworks.torch.untouched import untouched
from flopwatch.subjects.model import ModelSubject

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
        subject = _initialized(subject)
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
    ways: list[tuple[str, Callable[[ModelSubject, bool], Found]]] = [("meta", on_meta), ("fake", on_fake)]
    if (train or isinstance(subject.model, Called)) and any(
        isinstance(module, nn.RNNBase) for module in subject.model.modules()
    ):
        ways.reverse()  # a CPU takes the steps of recurrent layers together, of whose gradients the sums differ
    errors: list[Exception] = []
    for name, follow in ways:
        try:
            return follow(subject, train), f"on {name} tensors: nothing was computed"
        except FlopwatchError:
            raise
        except Exception as error:
            errors.append(error)
            if _asks_for_data(error):
                break
    # Out here: a program may raise one object again and again, and an error must not be its own cause.
    first, last = errors[0], errors[-1]
    own = len(errors) == len(ways) and _said(first) == _said(last) and not _is_small(subject.model)
    if own or (any(tensor.is_meta for tensor in subject.model.parameters()) and subject.rebuild is None):
        raise _as_seen(first, subject)
    try:
        return for_real(subject.real(), train), f"by a real run, since {_reason(first)}"
    except FlopwatchError:
        raise
    except Exception as error:
        last = error
    raise _as_seen(last, subject)


def _initialized(subject: ModelSubject) -> ModelSubject:
    """A model with lazy modules as a copy, which a first call has given its parameters; others as they are."""
    if not any(_is_lazy(each) for each in (*subject.model.parameters(), *subject.model.buffers())):
        return subject
    model = copy.deepcopy(subject.model)
    arguments, kwargs = arguments_of((tuple(subject.arguments), dict(subject.kwargs)), Twins(_copied), keep=False)
    try:
        with kept(model), asked_alone(model), torch.no_grad():
            model(*arguments, **kwargs)
    except Exception as error:
        raise UsageError(
            f"{subject.name} has parameters whose shapes are not known yet.",
            seen=f"A first call raised {type(error).__name__}: {str(error).partition(chr(10))[0]}",
            todo="Run it once on an input, so that its lazy modules are initialized.",
        ) from error
    return replace(subject, model=model)


def _is_lazy(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, (UninitializedParameter, UninitializedBuffer))


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
        checked(tensor)
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
    with kept(model), replaced(model, twins), optimizing(optimizers, twins):
        set_training(model, train)
        arguments, kwargs = arguments_of((tuple(subject.arguments), dict(subject.kwargs)), twins, keep=keep)
        return _run(model, arguments, kwargs, train, following, twins.all, around)


def for_real(subject: ModelSubject, train: bool) -> Found:
    """Follow it while it computes."""
    model: nn.Module = subject.model
    copies = Twins(_copied)
    with ExitStack() as stack:
        stack.enter_context(kept(model))
        if isinstance(model, Called):  # it may do anything: it gets copies
            stack.enter_context(replaced(model, copies))
            stack.enter_context(optimizing(model.optimizers, copies))
        else:
            stack.enter_context(untouched(model, training=train))
            copies.keep((*model.parameters(), *model.buffers()))
        set_training(model, train)
        arguments, kwargs = arguments_of((tuple(subject.arguments), dict(subject.kwargs)), copies, keep=False)
        known = [*model.parameters(), *model.buffers(), *tensors_in((arguments, kwargs))]
        return _run(model, arguments, kwargs, train, Following, known, nullcontext())


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy to write to; where PyTorch would not let anybody write, the tensor itself."""
    plain = tensor.layout is torch.strided and not tensor.is_nested and 0 not in tensor.stride()
    return tensor.detach().clone() if plain else tensor


def _run(
    model: nn.Module,
    arguments: tuple[Any, ...],
    kwargs: dict[str, Any],
    train: bool,
    following: type[Following],
    known: Iterable[torch.Tensor],
    around: AbstractContextManager[Any],
) -> Found:
    """Follow one step; an inference that needs gradients within (forces are those of energies) is followed once more with them."""
    with asked_alone(model), around:
        if train or isinstance(model, Called):
            return _followed(model, following, known, step_through(model, arguments, kwargs, train=train))
        try:
            step = step_through(model, arguments, kwargs, train=False)
            return _followed(model, following, known, step, inferring=True)
        except RuntimeError as error:
            if not wants_gradients(error):
                raise
        return _followed(model, following, known, partial(call_through(model), *arguments, **kwargs))


def _followed(
    model: nn.Module,
    following: type[Following],
    known: Iterable[torch.Tensor],
    step: Callable[[], Any],
    *,
    inferring: bool = False,
) -> Found:
    ops: list[Op] = []
    hooks, activations = FollowingHooks(model), Activations(known)
    with hooks, following(ops.append, hooks, activations, inferring=inferring):
        step()
    ops.extend(Op(name) for name in hidden_in(model))
    parts = hooks.parts[1:] if isinstance(model, Called) else hooks.parts
    return Found(ops, parts, hooks.notes, activations)


def _asks_for_data(error: BaseException | None) -> bool:
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, NeedsDataError):
            return True
        seen.append(error)
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
    """The error as it is, but for a model that wants a device which is not here; that one says where it comes from."""
    said = str(error)
    if any(each in said for each in _WANTS_CUDA) and not torch.cuda.is_available():
        wanted = UsageError(
            f"{subject.name} needs CUDA, which is not to be had here.",
            seen=said.partition("\n")[0],
            todo="Let it take the device of its input instead of naming one.",
        )
        wanted.__cause__ = error
        return wanted
    return error


def _bytes(tensors: Iterator[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
