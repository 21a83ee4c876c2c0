"""A model and its optimizer at a precision: forward, backward and a step that may be skipped."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.optim import Optimizer

from flopwatch.errors import UsageError
from flopwatch.training.precision import flags
from flopwatch.training.precision.casting import TORCH, cast, cast_model
from flopwatch.training.precision.devices import check
from flopwatch.training.precision.masters import MakeOptimizer, Masters
from flopwatch.training.precision.presets import Precision
from flopwatch.training.precision.scalers import Scaler
from flopwatch.training.precision.telemetry import Telemetry, Verdict
from flopwatch.training.precision.watching import Watching

# A scale of 2^24 has come down to 2^-8 after so many skipped steps: no gradient that overflows then is the scale's fault.
PATIENCE = 32


class Running:
    """Train `model`, which is changed in place, with the optimizer that `make_optimizer` makes, at `precision`.

    A step is `zero`, `forward`, `backward` of the loss of its fp32 outputs (several for accumulated gradients), `step`.
    `forward` is the same in validation, under torch.no_grad(). `model` may be replaced by a wrapper of itself
    (DistributedDataParallel, torch.compile); `module` is the bare one. channels_last is set before. PyTorch's TF32 flags
    are this precision's until `close()`, or to the end of a with block, and then what they were: one run at a time.

    `patience` is the number of skipped steps in a row after which `verdict` says that no scale fits; `watch` the number of
    steps after which losses are looked at on an accelerator (on a CPU each one is). Raises CannotMeasureError where `device`
    can't do the precision; `notes` says what it does only in part.
    """

    def __init__(
        self,
        model: nn.Module,
        make_optimizer: MakeOptimizer,
        precision: Precision,
        device: torch.device | str = "cpu",
        *,
        patience: int = PATIENCE,
        watch: int = 64,
    ) -> None:
        self.precision = precision
        self.device = torch.device(device)
        self.notes = (*precision.notes, *check(precision, self.device))
        cast_model(model, precision)
        self.module: nn.Module = model.to(self.device)
        self.model: Any = self.module
        self.masters = Masters(self.module, make_optimizer, precision.masters)
        self.notes = (*self.notes, *self.masters.notes())
        self.scaler = Scaler.of(precision)
        self._inputs = None if precision.inputs == "kept" else TORCH[precision.inputs]
        self._outputs = None if precision.outputs == "kept" else TORCH[precision.outputs]
        self._found = torch.zeros(1, dtype=torch.float32, device=self.device) if self.scaler.checks else None
        every = 1 if self.device.type == "cpu" else watch
        self._watching = Watching(self.module, self.run, self.masters.gradient, self.scaler, patience, every)
        self._pending = self._spent = self._unscaled = False
        self._flags = flags.Fp32Products(precision.tf32)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer; of the masters, where there are any."""
        return self.masters.optimizer

    @property
    def telemetry(self) -> Telemetry:
        """What happened so far; looks at the losses that nobody has looked at yet."""
        return self._watching.telemetry(self.precision.scaler != "none")

    @property
    def verdict(self) -> Verdict | None:
        """Why to stop, once there is a reason; costs nothing, and lags up to `watch` steps (`telemetry` looks at once)."""
        return self._watching.verdict

    def autocast(self) -> AbstractContextManager[object]:
        """The context of `forward`, for a loss that is to be computed in it."""
        if self.precision.autocast == "none":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=TORCH[self.precision.autocast])

    def forward(self, *inputs: Any) -> Any:
        """The model's outputs, as fp32, for inputs that may be of any floating type and on any device."""
        if torch.is_grad_enabled():
            self._watching.inputs = inputs
        return self.run(self.model, inputs)

    def ready(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """`inputs` on the device, in the type that the model gets."""
        whole: tuple[Any, ...] = cast(inputs, self._inputs, self.device)
        return whole

    def run(self, model: Any, inputs: tuple[Any, ...]) -> Any:
        """`model`, bare or wrapped, with this precision's casts around it."""
        with self.autocast():
            outputs = model(*self.ready(inputs))
        return cast(outputs, self._outputs)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of the scaled loss; one after a step begins anew.

        A second one before the step adds to the masters in fp32, as Apex did, unless DistributedDataParallel must find the
        sum in the model (no_sync).
        """
        if self._spent:
            self.zero()
        if self._pending:
            self.masters.gather(1 / self.scaler.scale, self._found)
            self.masters.drop_pair_gradients()
        self.propagate(loss)
        self._watching.loss(loss)  # behind backward: a replay writes to what backward has saved
        self._pending = bool(getattr(self.model, "require_backward_grad_sync", True)) and bool(self.masters.pairs)

    def propagate(self, loss: torch.Tensor) -> None:
        """Backward of the scaled loss, and nothing else."""
        loss = loss.float()
        torch.autograd.backward(loss if self.scaler.scale == 1 else loss * self.scaler.scale)

    def unscale(self) -> None:
        """Bring the true gradients to where the optimizer reads them, to clip them before `step`, which does it otherwise."""
        if not self._unscaled:
            inverse = 1 / self.scaler.scale
            self.masters.gather(inverse, self._found)
            self.masters.unscale_alone(inverse, self._found)
            self._unscaled = True

    def step(self) -> bool:
        """Update the weights; returns False, and leaves them alone, where the gradients overflowed and the scaler looks."""
        self.unscale()
        overflow = self._found is not None and bool(self._found.item())
        scale = self.scaler.scale
        skipped = self.scaler.update(overflow)
        if not skipped:
            self.optimizer.step()
            self.masters.give_back()
        self._watching.step(skipped, scale)
        self._spent = True
        return not skipped

    def zero(self) -> None:
        """Forget the gradients."""
        self.masters.zero()
        if self._found is not None:
            self._found.zero_()
        self._pending = self._spent = self._unscaled = False

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs to go on to the bit, between two steps; the random state is the caller's."""
        return {
            "precision": self.precision.as_json(),
            "model": self.module.state_dict(),
            "masters": self.masters.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "telemetry": self._watching.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`; raises UsageError for that of another precision or model."""
        here, there = self.precision.as_json(), state["precision"]
        other = [key for key in here if key != "name" and here[key] != there.get(key)]
        if other:
            raise UsageError(
                f"The checkpoint was trained at precision {there.get('name')}, not {here['name']}.",
                seen=f"They differ in {', '.join(other)}.",
                todo=f"Resume with --precision {there.get('name')}.",
            )
        self.zero()
        try:
            self.module.load_state_dict(state["model"])
        except RuntimeError as error:
            raise UsageError("The checkpoint's weights are those of another model.", seen=str(error)) from error
        self.masters.load_state_dict(state["masters"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self._watching.load_state_dict(state["telemetry"])

    def close(self) -> None:
        """Put PyTorch's flags back."""
        self._flags.restore()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
