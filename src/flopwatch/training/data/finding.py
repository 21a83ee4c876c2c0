"""From what somebody typed to a set of pictures."""

from __future__ import annotations

from pathlib import Path

from flopwatch.training.data.sets import DataSet, Progress


def find(
    text: str,
    *,
    scale: float = 1.0,
    cache: Path | None = None,
    size: int | None = None,
    seed: int = 0,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> DataSet:
    """The set that `text` means: a folder, `imagenette-160`, `-320` or `-full`, `made:imagenette` or `fashion-mnist`.

    `scale` takes that share of each class. `cache` is where sets are made or downloaded to. `size` (shorter side, 160
    or 320) and `seed` are of made sets. `incomplete` accepts an archive that was extracted only in part. Raises
    UsageError with what is wrong.
    """
    raise NotImplementedError
