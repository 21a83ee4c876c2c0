"""Checkpoints: everything that a run needs to go on as if it had never stopped, written so that the last good one survives."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import Any

from flopwatch.errors import CannotMeasureError, UsageError

NAME = "checkpoint.pt"
BEST = "best.pt"
FORMAT = 1


def random_states() -> dict[str, Any]:
    """The global generators of Python and PyTorch, in a form that holds no code."""
    import torch

    kind, numbers, rest = random.getstate()
    states: dict[str, Any] = {"python": [kind, list(numbers), rest], "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore_random(states: dict[str, Any]) -> None:
    """Put the generators back to where `random_states` found them."""
    import torch

    kind, numbers, rest = states["python"]
    random.setstate((kind, tuple(numbers), rest))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        for device, state in zip(range(torch.cuda.device_count()), states["cuda"], strict=False):
            torch.cuda.set_rng_state(state, device)


def save(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint beside its predecessor and put it in its place only when it is complete and on the disk.

    Raises CannotMeasureError where that cannot be done; the predecessor is still there then.
    """
    import torch

    fresh = path.with_name(path.name + ".new")
    try:
        with open(fresh, "wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        # torch's own writer may put its own exception over the system's.
        cause = error if isinstance(error, OSError) else error.__context__
        reason = cause.strerror if isinstance(cause, OSError) else str(error).partition("\n")[0]
        kept = "The one before it is still there." if path.exists() else ""
        raise CannotMeasureError(
            f"The checkpoint could not be written to {str(path)!r}: {reason}.",
            seen=kept,
            todo="Make room, or choose another folder with --output DIR.",
        ) from error
    # The new name must outlive a power cut as well.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def find(text: str) -> Path:
    """The checkpoint that a user means by a file or by the folder of a run; raises UsageError if there is none."""
    path = Path(text)
    if path.is_dir():
        path = path / NAME
    elif path.name == "checkpoint" and not path.exists():
        path = path.with_name(NAME)
    if not path.is_file():
        raise UsageError(f"There is no checkpoint {str(path)!r}.", todo="Give the folder that --output named.")
    return path


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint into host memory, executing nothing of it; raises UsageError for a file that is none."""
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle, zip and torch each raise their own
        first = str(error).strip().partition("\n")[0][:200]
        raise UsageError(
            f"The checkpoint {str(path)!r} cannot be read: it is damaged or not a checkpoint.",
            seen=f"{type(error).__name__}: {first}" if first else "",
        ) from error
    if not isinstance(state, dict) or "format" not in state or "job" not in state:
        raise UsageError(
            f"{str(path)!r} is not a checkpoint of flopwatch.", todo="Weights alone are given with --weights FILE."
        )
    if state["format"] != FORMAT:
        raise UsageError(
            f"The checkpoint {str(path)!r} has format {state['format']}; this version of flopwatch reads {FORMAT}."
        )
    return state
