"""What training needs by the formulas: FLOP for an image and for an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flopwatch import estimating
from flopwatch.errors import FlopwatchError
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import OPTIMIZER
from flopwatch.record import Record, tally_of


@dataclass(frozen=True, slots=True)
class Work:
    """FLOP of one image (forward and backward), MAC of its forward and backward, FLOP of one update; `unknown` operators are not in it.

    All are None where the network could not be followed; `why` says the reason then.
    """

    flop_per_image: float | None
    mac_per_image: float | None
    flop_per_update: int | None
    unknown: tuple[str, ...] = ()
    why: str = ""

    def rate(self, images_per_second: float | None, images_per_update: int) -> float | None:
        """FLOP/s that this work means at so many images a second; None if a part of it is not known."""
        if images_per_second is None or self.flop_per_image is None or self.flop_per_update is None or self.unknown:
            return None
        return images_per_second * (self.flop_per_image + self.flop_per_update / images_per_update)

    def as_json(self) -> dict[str, Any]:
        """Stable names."""
        return {
            "flop_per_image": self.flop_per_image,
            "mac_per_image": self.mac_per_image,
            "flop_per_update": self.flop_per_update,
            "unknown": list(self.unknown),
            "why": self.why,
        }


def estimate(model: Any, batch: int, image_size: int) -> Work:
    """The work of one training step on `batch` images of image_size × image_size; the model stays as it is."""
    import torch

    pictures = torch.empty(batch, 3, image_size, image_size, device="meta")
    try:
        record = estimating.estimate(model, pictures, train=True)
    except FlopwatchError as error:
        return Work(None, None, None, why=str(error))
    step = _flop(record, update=False)
    return Work(
        step / batch,
        sum(cell.mac for cell in record.cells) / batch,
        _flop(record, update=True),
        tuple(each.name for each in record.unknown),
    )


def _flop(record: Record, *, update: bool) -> int:
    cells = (cell for cell in record.cells if (cell.function == OPTIMIZER) is update)
    return sum(record.flop(Tally.total(tally_of(cell.operations) for cell in cells)).values())
