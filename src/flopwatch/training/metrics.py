"""Accuracy: every image counts once, k never exceeds the classes, and an interval says how far a share can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

Z95 = 1.959963984540054
"""Quantile of the normal distribution for an interval of 95 %."""


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval of a share; None without trials. E. B. Wilson, JASA 22 (1927)."""
    if n == 0:
        return None
    share = hits / n
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    centre = share + z * z / (2 * n)
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


@dataclass(frozen=True, slots=True)
class Scores:
    """What a pass over labelled images gave: counts, and the mean loss of the images whose loss was finite."""

    n: int
    hits1: int
    hits5: int | None
    loss: float | None

    @property
    def top1(self) -> float | None:
        """Share of images whose class was the first guess; None without images."""
        return self.hits1 / self.n if self.n else None

    @property
    def top5(self) -> float | None:
        """Share of images whose class was among five guesses; None for fewer than five classes."""
        return self.hits5 / self.n if self.n and self.hits5 is not None else None


class Meter:
    """Adds up batches on the device, without waiting for it; `scores()` waits.

    `classes` is the width of the head: with fewer than five there is no top-5.
    """

    def __init__(self, classes: int, device: Any) -> None:
        import torch

        self._k = 5 if classes >= 5 else 1
        # Double precision on the host, single sums of a batch elsewhere: not every device knows fp64.
        self._device = device
        self._hits = torch.zeros(2, dtype=torch.int64, device=device)
        self._n = self._finite = 0
        self._losses: list[Any] = []
        self._loss = 0.0

    def add(self, outputs: Any, labels: Any, loss: Any) -> None:
        """One batch: outputs (images × classes), labels (images), and the mean loss as a tensor without gradient."""
        guesses = outputs.topk(self._k, dim=1).indices
        right = guesses == labels.unsqueeze(1)
        self._hits[0] += right[:, 0].sum()
        self._hits[1] += right.sum()
        self._n += len(labels)
        self._losses.append((loss.detach(), len(labels)))

    def settle(self) -> list[bool]:
        """Fetch the losses that are still on the device; for each batch since the last call, whether its loss was not finite."""
        import torch

        if not self._losses:
            return []
        values = torch.stack([loss.float() for loss, _ in self._losses]).tolist()
        for value, (_, images) in zip(values, self._losses, strict=True):
            if isfinite(value):
                self._loss += value * images
                self._finite += images
        self._losses.clear()
        return [not isfinite(value) for value in values]

    def scores(self) -> Scores:
        """Everything so far."""
        self.settle()
        hits1, hits5 = self._hits.tolist()
        mean = self._loss / self._finite if self._finite else None
        return Scores(self._n, hits1, hits5 if self._k == 5 else None, mean)

    def as_state(self) -> dict[str, Any]:
        """Plain numbers, for a checkpoint."""
        self.settle()
        return {"hits": self._hits.tolist(), "n": self._n, "finite": self._finite, "loss": self._loss}

    def load_state(self, state: dict[str, Any]) -> None:
        """What `as_state` wrote."""
        import torch

        self._hits = torch.tensor(state["hits"], dtype=torch.int64, device=self._device)
        self._n, self._finite, self._loss = state["n"], state["finite"], state["loss"]


def chance(labels: Sequence[int], classes: int) -> tuple[float | None, float | None]:
    """What guessing gives for top-1 and top-5: always the most frequent classes of the labels; None without labels."""
    if not labels:
        return None, None
    counts: dict[int, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    ordered = sorted(counts.values(), reverse=True)
    return ordered[0] / len(labels), sum(ordered[:5]) / len(labels) if classes >= 5 else None
