"""What a run at some precision tells about itself: scale, skipped steps, what was not finite first, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

KEPT = 32


@dataclass(frozen=True)
class Fault:
    """What was not finite first: a module by its path ("" is the model), and what of it.

    "inputs": what went into the model; "weights": a parameter or buffer of the module; "output": what it gave, from finite
    weights; "gradient": backward's, nearest to the loss; "loss": the loss alone, all outputs being finite. `exact` is
    False where it was looked for after the failing step, when the weights may have been spoilt already.
    """

    module: str
    what: Literal["inputs", "weights", "output", "gradient", "loss"]
    step: int
    dtype: str = ""
    exact: bool = True

    def __str__(self) -> str:
        where = f" of {self.module}" if self.module else ""
        kind = f" ({self.dtype})" if self.dtype else ""
        return f"{self.what}{where}{kind} at step {self.step}"


@dataclass(frozen=True)
class Verdict:
    """Why training is over, as a result: "diverged" (a loss that is not finite) or "no scale" (each step is skipped).

    Steps count from 1; `step` is the first whose loss was not finite, or the first of the skipped ones.
    """

    reason: Literal["diverged", "no scale"]
    step: int
    fault: Fault | None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Telemetry:
    """The state after some steps; `scale` is None without a scaler, `skips` has the numbers of the first skipped steps."""

    steps: int
    updates: int
    skipped: int
    skipped_in_a_row: int
    skips: tuple[int, ...]
    scale: float | None
    least_scale: float | None
    largest_scale: float | None
    fault: Fault | None
    verdict: Verdict | None

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return asdict(self)
