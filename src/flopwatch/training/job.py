"""What a run was asked to do, and what of it may change when the run is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.training import recipes
from flopwatch.training.recipes import Recipe

# Of these a checkpoint's value can be overruled; all others decide what was computed so far. Data may have moved: the same
# pictures are asked for later.
FREE = ("lr", "epochs", "workers", "data")


@dataclass(frozen=True, slots=True)
class Job:
    """A run: network, data, recipe, precision (a preset and fields that overrule it), and where it starts from.

    `data` is a folder or the name of a data set, `scale` the share of its images; `classes` the width of the head (None:
    one output for each class); `weights` a file, or "published" for those of the authors.
    """

    arch: str
    data: str
    recipe: Recipe
    precision: str = "fp32-ieee"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    classes: int | None = None
    weights: str | None = None
    evaluate: bool = False
    compile: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a checkpoint and a result."""
        return {**asdict(self), "recipe": self.recipe.as_json(), "overrides": dict(self.overrides)}


def from_json(row: Mapping[str, Any]) -> Job:
    """A job as `as_json` wrote it."""
    return Job(**{**row, "recipe": recipes.from_json(row["recipe"])})


def resumed(saved: Job, given: Mapping[str, Any]) -> tuple[Job, tuple[str, ...]]:
    """The job of a checkpoint with what was given on the command line; notes on whose value holds.

    `given` holds fields of Job and Recipe that were typed. The checkpoint wins unless an option was given; learning rate,
    epochs, workers and the place of the data may be, all others must agree with it. Raises UsageError where they do not.
    """
    rows = saved.as_json()
    recipe = rows.pop("recipe")
    notes = []
    changed: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        before = recipe["name"] if name == "recipe" else recipe.get(name, rows.get(name))
        if value == before:
            continue
        if name not in FREE:
            option = {"arch": "network"}.get(name, name.replace("_", " "))
            raise UsageError(
                f"The checkpoint is of a run with {option} {before}, not {value}.",
                todo="Leave the option out, or start a new run without --resume.",
            )
        changed[name] = value
        notes.append(f"{name} {value} from the command line replaces {before} of the checkpoint")
    of_job = {name: changed.pop(name) for name in tuple(changed) if name in rows}
    return Job(**{**rows, **of_job, "recipe": saved.recipe.with_(**changed)}), tuple(notes)
