"""What is measured before a run, on a copy of its network: its datatypes, the processor by itself, the loader by itself."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.randomness import RandomStates
from flopwatch.training import loading, memory, precision, probes
from flopwatch.training.probes import Rate

if TYPE_CHECKING:
    from flopwatch.training.session import Session


CENSUS = 8
"""Pictures whose datatypes are looked at: types do not depend on how many there are."""


@dataclass(frozen=True, slots=True)
class Before:
    """The census of datatypes, and the two rates; None: not measured."""

    census: precision.Census | None = None
    compute: Rate | None = None
    loader: Rate | None = None


def look(session: Session, model: Any) -> Before:
    """Measure; neither the network nor any generator of random numbers is changed.

    Raises UsageError for a network that refuses its input, CannotMeasureError if memory does not suffice.
    """
    kept = RandomStates()
    try:
        with memory.explained(session.what, trial=True), session.run(copy.deepcopy(model)) as scratch:
            census, compute = _on_device(session, scratch)
        del scratch
        _give_back(session.place.device)
        loader = _loader(session) if session.place.probe else None
    finally:
        kept.restore()
    return Before(census, compute, loader)


def _on_device(session: Session, scratch: precision.Running) -> tuple[precision.Census, Rate | None]:
    import torch

    size = session.recipe.image_size
    loop = session.loop_of(scratch)
    pictures, wanted = loop.moved(
        torch.randn(session.first_batch, 3, size, size),
        torch.randint(len(session.data.classes), (session.first_batch,)),
    )
    _check_last(session, scratch, pictures)
    session.watch.say("looking at datatypes")
    census = precision.census(scratch, (pictures[:CENSUS], wanted[:CENSUS]), loop.loss)
    if not session.place.probe:
        return census, None
    session.watch.say("measuring the processor by itself")
    return census, probes.compute(scratch, loop.loss, pictures, wanted, session.clock)


def _loader(session: Session) -> Rate:
    session.watch.say("measuring the loader by itself")
    recipe = session.recipe
    pictures = session.pictures(training=True)
    endless = loading.Endless(len(pictures), session.first_batch, recipe.seed)
    alone = loading.loader(
        pictures, endless, workers=recipe.workers, device=session.place.device, seed=recipe.seed, persistent=False
    )
    return probes.loader(alone, recipe.workers, session.clock)


def _check_last(session: Session, scratch: precision.Running, pictures: Any) -> None:
    """A last batch of one image breaks batch normalisation in some networks: better said now than after an epoch."""
    if loading.sizes(len(session.data.train), session.recipe.batch)[-1] != 1:
        return
    import torch

    scratch.model.train()
    try:
        with torch.no_grad():
            scratch.forward(pictures[:1])
    except ValueError as error:
        raise UsageError(
            f"The last batch of an epoch has one picture, from which {session.job.arch} cannot learn.",
            seen=f"{error}.",
            todo="Choose another --batch.",
        ) from error


def _give_back(device: str) -> None:
    """Memory that the copy had on a GPU must not count as the run's."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()
