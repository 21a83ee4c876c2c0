"""Recipes: how a network is trained, as data; one table of recipes.toml each."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib import resources
from math import isfinite
from typing import Any, Literal, get_args

from flopwatch.errors import UsageError

DEFAULT = "imagenet-example"
Optimizer = Literal["sgd", "adamw"]
Schedule = Literal["step", "onecycle", "constant"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a run computes, apart from network, data and precision.

    `batch` is the number of images in a batch and `accumulate` how many batches make one update; `warmup` is a share of the
    whole run, `final` a share of `lr`, `scale` the least share of a picture's area that a random crop takes; for
    validation the shorter side is made `margin` × image_size, and the middle cut out.
    """

    name: str
    source: str
    about: str
    optimizer: Optimizer
    lr: float
    weight_decay: float
    schedule: Schedule
    epochs: int
    batch: int
    workers: int
    image_size: int
    scale: float
    margin: float
    label_smoothing: float
    channels_last: bool
    momentum: float = 0.9
    nesterov: bool = False
    every: int = 30
    gamma: float = 0.1
    warmup: float = 0.0
    final: float = 0.0
    accumulate: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 1), ("accumulate", 1), ("workers", 0), ("image_size", 1)):
            if getattr(self, name) < least:
                what = name.replace("_", " ")
                raise UsageError(f"{getattr(self, name)} is no number for {what}.", todo=f"Give {least} or more.")
        if not (isfinite(self.lr) and self.lr >= 0):
            raise UsageError(f"{self.lr} is no learning rate.", todo="Give a number from 0 on.")
        if self.optimizer not in get_args(Optimizer) or self.schedule not in get_args(Schedule):
            raise ValueError(f"recipe {self.name}: {self.optimizer}, {self.schedule}")

    def with_(self, **given: Any) -> Recipe:
        """The recipe with those fields that are not None replaced; raises UsageError for values that make no sense."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def as_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    def lr_at(self, epoch: int, fraction: float) -> float:
        """The learning rate in an epoch (from 0 on), of which that fraction is done.

        It depends on the place in the run alone: an update that is skipped, or a run that is taken up again, shifts nothing.
        """
        if self.schedule == "step":
            return self.lr * float(self.gamma ** (epoch // self.every))
        if self.schedule == "constant":
            return self.lr
        return self._onecycle((epoch + fraction) / self.epochs)

    def _onecycle(self, done: float) -> float:
        """A straight line up from a 25th of the rate, then half a cosine down."""
        from math import cos, pi

        if done < self.warmup:
            start = self.lr / 25
            return start + (self.lr - start) * done / self.warmup
        falling = (done - self.warmup) / (1 - self.warmup)
        low = self.lr * self.final
        return low + (self.lr - low) * (1 + cos(pi * min(falling, 1.0))) / 2


@cache
def recipes() -> dict[str, Recipe]:
    """All recipes by name, in the order of the file."""
    text = resources.files("flopwatch.training").joinpath("recipes.toml").read_text(encoding="utf-8")
    return {name: Recipe(name=name, **row) for name, row in tomllib.loads(text).items()}


def find(name: str) -> Recipe:
    """The recipe of that name; raises UsageError with the names there are."""
    known = recipes()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        todo = f"Did you mean {near[0]}?" if near else f"Choose one of: {', '.join(known)}."
        raise UsageError(f"There is no recipe named {name!r}.", todo=todo)
    return known[name]


def from_json(row: dict[str, Any]) -> Recipe:
    """A recipe as `as_json` wrote it; fields of a later version are passed over."""
    known = {field.name for field in fields(Recipe)}
    return Recipe(**{name: value for name, value in row.items() if name in known})
