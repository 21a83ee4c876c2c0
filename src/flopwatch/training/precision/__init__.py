"""Which datatypes a training step uses: presets as data, made real by `Running`, proven by `census`.

`find`, `PRESETS` and `Precision` load no framework; the other names load PyTorch when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from flopwatch.training.precision.asking import find
from flopwatch.training.precision.presets import PRESETS, Precision
from flopwatch.training.precision.telemetry import Fault, Telemetry, Verdict

if TYPE_CHECKING:
    from flopwatch.training.precision.counts import Census
    from flopwatch.training.precision.devices import Abilities, abilities, check
    from flopwatch.training.precision.instruments import census
    from flopwatch.training.precision.running import Running

__all__ = [
    "PRESETS",
    "Precision",
    "find",
    "check",
    "abilities",
    "Abilities",
    "Running",
    "Telemetry",
    "Verdict",
    "Fault",
    "census",
    "Census",
]

_TORCH = {
    "Running": "running",
    "check": "devices",
    "abilities": "devices",
    "Abilities": "devices",
    "census": "instruments",
    "Census": "counts",
}


def __getattr__(name: str) -> Any:
    if name in _TORCH:
        return getattr(import_module(f"flopwatch.training.precision.{_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
