"""Runs in the environment of one counter: `python -m peers.timing COUNTER REPEATS` prints the seconds of each estimate of ResNet-50."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

WARM_UPS = 2


def _flopwatch(model: Any, image: Any) -> float:
    import flopwatch

    return float(flopwatch.estimate(model, image).mac)


def _fvcore(model: Any, image: Any) -> float:
    import logging

    from fvcore.nn import FlopCountAnalysis

    # What it says of operators that it does not know would cost it time.
    logging.disable(logging.CRITICAL)
    return float(FlopCountAnalysis(model, image).total())


def _flop_counter_meta(model: Any, image: Any) -> float:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(image)
    return counter.get_total_flops() / 2


COUNTERS: dict[str, Callable[[Any, Any], float]] = {
    "flopwatch": _flopwatch,
    "fvcore": _fvcore,
    "flop_counter_meta": _flop_counter_meta,
}


def main(arguments: Sequence[str]) -> int:
    """Build the model once, warm up, and time each estimate."""
    import torch
    from torchvision import models

    counter, repeats = arguments[0], int(arguments[1])
    warnings.simplefilter("ignore")
    device = "meta" if counter.endswith("_meta") else "cpu"
    with torch.device(device):
        model, image = models.resnet50().eval(), torch.randn(1, 3, 224, 224)
    count = COUNTERS[counter]
    found: list[float] = []
    for number in range(WARM_UPS + repeats):
        begin = time.perf_counter()
        mac = count(model, image)
        if number >= WARM_UPS:
            found.append(time.perf_counter() - begin)
    print(json.dumps({"mac": mac, "seconds": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
