"""The number that a loss is multiplied by, with the constants of Apex's LossScaler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flopwatch.training.precision.presets import Precision

# apex/amp/scaler.py: init_scale, scale_factor, scale_window, max_loss_scale; its min_loss_scale was None.
INITIAL = 2.0**16
FACTOR = 2.0
WINDOW = 2000
LARGEST = 2.0**24


@dataclass
class Scaler:
    """A scale; a dynamic one halves after an overflow and doubles after WINDOW steps without, up to LARGEST.

    It has no least value, as in Apex. A static one never changes. `checks`: whether an overflow skips the step; where it
    does not, nobody looks for overflows.
    """

    scale: float
    dynamic: bool
    checks: bool
    clean: int = 0

    @classmethod
    def of(cls, precision: Precision) -> Scaler:
        """The scaler of a precision; where there is none the scale is 1."""
        dynamic = precision.scaler == "dynamic"
        scale = precision.scaler if isinstance(precision.scaler, float) else INITIAL if dynamic else 1.0
        return cls(scale, dynamic, precision.skips)

    def update(self, overflow: bool) -> bool:
        """Count a step; returns whether it is to be skipped."""
        if overflow and self.checks:
            self.clean = 0
            if self.dynamic:
                self.scale /= FACTOR
            return True
        self.clean += 1
        if self.dynamic and self.clean == WINDOW:
            self.scale = min(self.scale * FACTOR, LARGEST)
            self.clean = 0
        return False

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"scale": self.scale, "clean": self.clean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.scale, self.clean = float(state["scale"]), int(state["clean"])
