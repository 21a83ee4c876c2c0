"""The proof of a precision: one training step under instruments, which leaves no trace in the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from flopwatch.frameworks.torch.untouched import untouched
from flopwatch.training.precision import flags
from flopwatch.training.precision.casting import affine_batch_norm, floats, name_of
from flopwatch.training.precision.counts import Census, Operation, Tensors
from flopwatch.training.precision.kernels import kernels, listening
from flopwatch.training.precision.proof import complaints
from flopwatch.training.precision.running import Running

Loss = Callable[[Any, Any], torch.Tensor]


def census(running: Running, batch: tuple[Any, ...], loss: Loss = nn.functional.cross_entropy) -> Census:
    """The datatypes of one step of `running` on `batch` (inputs…, target), whose loss is `loss(outputs, target)`.

    The step is a whole one, optimizer included, of the bare module without torch.compile; weights, masters, optimizer,
    gradients, BatchNorm's statistics, scale, telemetry and random state are afterwards what they were. It needs memory for
    a copy of weights and optimizer: a few images are enough. On CUDA a step before it lets cuDNN search.
    """
    *inputs, target = batch
    with untouched(running.module, training=True), _kept(running), _eager(running.module):
        running.module.train()
        if running.device.type == "cuda":
            _step(running, tuple(inputs), target, loss, _Types(), update=False)
            running.masters.zero()
        types = _Types()
        with listening(running.device) as names:
            overflow, ends = _step(running, tuple(inputs), target, loss, types)
        seen = Census(
            precision=running.precision,
            device=_device(running.device),
            tensors=(*_tensors(running), *ends),
            operations=types.operations(),
            flags=flags.read(),
            kernels=None if names is None else kernels(names),
            overflow=overflow,
            notes=running.notes,
            torch=str(torch.__version__),
        )
    narrow = [each for each in running.masters.names if each.dtype != torch.float32]
    kinds = frozenset(_kind(module) for module in running.module.modules() if affine_batch_norm(module))
    wanted = len(narrow) if running.precision.masters else 0
    return replace(seen, complaints=complaints(seen, affine_norms=kinds, masters=wanted))


def _step(
    running: Running, inputs: tuple[Any, ...], target: Any, loss: Loss, types: _Types, *, update: bool = True
) -> tuple[bool, tuple[Tensors, ...]]:
    """A step that is taken (with `update`) whatever its gradients are; returns whether one overflowed, and the ends of the model."""
    found = torch.zeros(1, dtype=torch.float32, device=running.device)
    inverse = 1 / running.scaler.scale
    with types.of("forward"):
        outputs = running.run(running.module, inputs)
        value = loss(outputs, target.to(running.device) if isinstance(target, torch.Tensor) else target)
    with types.of("backward"):
        running.propagate(value)
    masters = running.masters
    with types.of("unscale"):
        # Where nobody looks for overflows in training, nobody does here.
        look = found if running.scaler.checks else None
        masters.gather(inverse, look)
        masters.unscale_alone(inverse, look)
    gathered = [masters.gradient(each) for each in masters.names]
    overflow = not all(bool(torch.isfinite(each).all()) for each in gathered if each is not None)
    if update:
        with types.of("optimizer"):
            masters.optimizer.step()
            masters.give_back()
    ends = [("inputs", running.ready(inputs)), ("outputs", outputs), ("loss", value)]
    return overflow, _grouped((part, "model", tensor) for part, whole in ends for tensor in floats(whole))


class _Types(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch's own
    """Counts operators by phase and by the types of their floating operands and results; views compute nothing."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._phase = ""
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    @contextmanager
    def of(self, phase: str) -> Iterator[None]:
        self._phase = phase
        with self:
            yield

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        returns = func._schema.returns
        alias = returns[0].alias_info if returns else None
        if alias is None or alias.is_write:
            operands = _joined(floats((args, kwargs or {})))
            results = _joined(floats(out))
            if operands or results:
                self._counts[(self._phase, func._schema.name, operands, results)] += 1
        return out

    def operations(self) -> tuple[Operation, ...]:
        """In the order in which they were first seen."""
        return tuple(Operation(*key, calls) for key, calls in self._counts.items())


def _joined(tensors: Iterable[torch.Tensor]) -> str:
    return "+".join(dict.fromkeys(name_of(each.dtype) for each in tensors))


def _kind(module: nn.Module) -> str:
    """The class of a module; BatchNorm without weights is told from that with."""
    plain = isinstance(module, nn.modules.batchnorm._BatchNorm) and not affine_batch_norm(module)
    return type(module).__name__ + (" (affine=False)" if plain else "")


def _tensors(running: Running) -> tuple[Tensors, ...]:
    """Parameters, buffers and gradients by kind of module, masters and the state of the optimizer."""
    found: list[tuple[str, str, torch.Tensor]] = []
    masters = running.masters
    seen: set[int] = set()
    for part in ("parameters", "buffers", "gradients"):
        for module in running.module.modules():
            own = module.buffers(recurse=False) if part == "buffers" else module.parameters(recurse=False)
            for tensor in own:
                if part != "gradients" and id(tensor) in seen:
                    continue  # shared
                seen.add(id(tensor))
                value = tensor.grad if part == "gradients" else tensor
                if value is not None:
                    found.append((part, _kind(module), value))
    for _, master in masters.pairs:
        found.append(("masters", "optimizer", master))
        if master.grad is not None:
            found.append(("master gradients", "optimizer", master.grad))
    for state in masters.optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                found.append(("optimizer state", str(key), value))
    return _grouped(found)


def _grouped(found: Iterable[tuple[str, str, torch.Tensor]]) -> tuple[Tensors, ...]:
    counts: dict[tuple[str, str, str], list[int]] = {}
    for part, kind, tensor in found:
        count = counts.setdefault((part, kind, name_of(tensor.dtype)), [0, 0])
        count[0] += 1
        count[1] += tensor.numel()
    return tuple(Tensors(*key, *count) for key, count in counts.items())


@contextmanager
def _kept(running: Running) -> Iterator[None]:
    """Put masters and the optimizer back: it works on copies of its state, and gets the old objects again."""
    optimizer: Optimizer = running.optimizer
    masters = [(master, master.detach().clone(), master.grad) for _, master in running.masters.pairs]
    state, groups = optimizer.state, [_options(group) for group in optimizer.param_groups]
    called = optimizer.__dict__.get("_opt_called")
    copies = defaultdict(dict, {parameter: deepcopy(values) for parameter, values in state.items()})
    try:
        optimizer.state = copies
        for master, _, _ in masters:
            master.grad = None
        yield
    finally:
        optimizer.state = state
        for group, options in zip(optimizer.param_groups, groups, strict=True):
            group.update(options)
        if called is not None or "_opt_called" in optimizer.__dict__:
            optimizer.__dict__["_opt_called"] = bool(called)
        with torch.no_grad():
            for master, copy, gradient in masters:
                master.copy_(copy)
                master.grad = gradient


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: deepcopy(value) for key, value in group.items() if key != "params"}


@contextmanager
def _eager(model: nn.Module) -> Iterator[None]:
    """Without torch.compile, under which no single operators are seen."""
    with ExitStack() as stack:
        if any(getattr(module, "_compiled_call_impl", None) is not None for module in model.modules()):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


def _device(device: torch.device) -> str:
    if device.type != "cuda":
        return device.type
    major, minor = torch.cuda.get_device_capability(device)
    return f"{torch.cuda.get_device_name(device)} (capability {major}.{minor})"
