"""Follow a run's losses and skipped steps, and say when it is over; looks closer only when something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from flopwatch.training.precision.faults import first_gradient, replay
from flopwatch.training.precision.scalers import Scaler
from flopwatch.training.precision.telemetry import KEPT, Fault, Telemetry, Verdict


class Watching:
    """Counts of steps, and the first fault; losses are kept and looked at every `every` steps, so that none waits.

    A loss that is not finite ends a run in which nothing skips steps; where steps are skipped, `patience` of them in a row
    do. `inputs` are the last ones that forward got; `gradient` gives that of a parameter, once it is gathered.
    """

    def __init__(
        self,
        model: nn.Module,
        run: Callable[[Any, tuple[Any, ...]], Any],
        gradient: Callable[[nn.Parameter], torch.Tensor | None],
        scaler: Scaler,
        patience: int,
        every: int,
    ) -> None:
        self.inputs: tuple[Any, ...] | None = None
        self.verdict: Verdict | None = None
        self._model, self._run, self._gradient, self._scaler = model, run, gradient, scaler
        self._patience, self._every = patience, every
        self._steps = self._updates = self._skipped = self._row = 0
        self._skips: list[int] = []
        self._least = self._largest = scaler.scale
        self._fault: Fault | None = None
        self._losses: list[tuple[int, torch.Tensor]] = []

    def loss(self, loss: torch.Tensor) -> None:
        """The loss of the step that is under way."""
        if self._scaler.checks or self.verdict is not None:
            return
        self._losses.append((self._steps + 1, loss.detach()))
        if len(self._losses) >= self._every:
            self._look()

    def _look(self) -> None:
        losses, self._losses = self._losses, []
        if not losses or self.verdict is not None:
            return
        good = torch.isfinite(torch.stack([loss.float().reshape(()) for _, loss in losses])).tolist()
        bad = next((step for (step, _), fine in zip(losses, good, strict=True) if not fine), None)
        if bad is None:
            return
        # Only the last batch is still there: where it is not the failing one, the weights may be spoilt by then.
        exact = bad == self._steps + 1
        fault, _ = self._replay(exact)
        self._fault = fault or Fault("", "loss", bad, exact=exact)
        found = "first" if exact else "found afterwards"
        message = f"Diverged at step {bad}: the loss is not finite; {found}: {self._fault}."
        self.verdict = Verdict("diverged", bad, self._fault, message)

    def _replay(self, exact: bool) -> tuple[Fault | None, list[str]]:
        # A replay on one rank alone would wait for the others in every SyncBatchNorm.
        if self.inputs is None or any(isinstance(module, nn.SyncBatchNorm) for module in self._model.modules()):
            return None, []
        return replay(
            self._model, lambda *inputs: self._run(self._model, inputs), self.inputs, self._steps + 1, exact=exact
        )

    def step(self, skipped: bool, scale: float) -> None:
        """A step has ended that was taken, or skipped, at `scale`."""
        if skipped and (self._fault is None or self._row + 1 == self._patience):
            # The gradients are still there. The order of the modules is worth a run of the model only at the end.
            last = self._row + 1 == self._patience
            fault, order = self._replay(True) if last else (None, [])
            fault = fault or first_gradient(self._model, self._gradient, order, self._steps + 1)
            self._fault = self._fault or fault
            if last and self.verdict is None:
                self.verdict = self._no_scale(fault, scale)
        self._steps += 1
        self._updates += not skipped
        self._skipped += skipped
        self._row = self._row + 1 if skipped else 0
        if skipped and len(self._skips) < KEPT:
            self._skips.append(self._steps)
        self._least = min(self._least, self._scaler.scale)
        self._largest = max(self._largest, self._scaler.scale)

    def _no_scale(self, fault: Fault | None, scale: float) -> Verdict:
        first = self._steps + 2 - self._patience
        where = f"; first: {fault}" if fault else ""
        return Verdict(
            "no scale",
            first,
            fault,
            f"No scale fits: {self._patience} steps in a row were skipped from step {first} on, the last at scale {scale:g}{where}.",
        )

    def telemetry(self, scaled: bool) -> Telemetry:
        """Everything, after a look at the losses that are left."""
        self._look()
        return Telemetry(
            steps=self._steps,
            updates=self._updates,
            skipped=self._skipped,
            skipped_in_a_row=self._row,
            skips=tuple(self._skips),
            scale=self._scaler.scale if scaled else None,
            least_scale=self._least if scaled else None,
            largest_scale=self._largest if scaled else None,
            fault=self._fault,
            verdict=self.verdict,
        )

    def state_dict(self) -> dict[str, Any]:
        """The counts, as plain values."""
        self._look()
        return {
            "steps": self._steps,
            "updates": self._updates,
            "skipped": self._skipped,
            "row": self._row,
            "skips": list(self._skips),
            "least": self._least,
            "largest": self._largest,
            "fault": asdict(self._fault) if self._fault else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._steps, self._updates = state["steps"], state["updates"]
        self._skipped, self._row = state["skipped"], state["row"]
        self._skips = list(state["skips"])
        self._least, self._largest = state["least"], state["largest"]
        self._fault = Fault(**state["fault"]) if state["fault"] else None
        self._losses, self.verdict = [], None
