"""Small things to train on: a folder of tiny pictures, a tiny network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn

COLOURS = ((250, 20, 20), (20, 250, 20), (20, 20, 250))
SIDE = 12


def folder(root: Path, train: int = 10, val: int = 4, classes: int = 3) -> Path:
    """A data set: `train` and `val` pictures of each class, whose colour tells it."""
    for split, count in (("train", train), ("val", val)):
        for label in range(classes):
            home = root / split / f"class{label}"
            home.mkdir(parents=True)
            for number in range(count):
                colour = tuple((part + 3 * number) % 256 for part in COLOURS[label % 3])
                Image.new("RGB", (SIDE, SIDE), colour).save(home / f"{number}.png")
    return root


class Tiny(nn.Module):
    """A convolution, a dropout, a head: everything a resumed run has to get right in a few hundred weights."""

    def __init__(self, head: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(4, head)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(torch.relu(self.norm(self.conv(x))))
        return self.fc(x.mean((2, 3)))


class Plain:
    """What the loop needs of a network at its precision, without any precision."""

    verdict = None

    def __init__(self, model: Any, lr: float = 0.1) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr)
        self.steps = 0

    @property
    def telemetry(self) -> Any:
        return self

    def forward(self, *inputs: Any) -> Any:
        return self.model(*inputs)

    def backward(self, loss: Any) -> None:
        loss.backward()

    def step(self) -> bool:
        self.optimizer.step()
        self.steps += 1
        return True

    def zero(self) -> None:
        self.optimizer.zero_grad()
