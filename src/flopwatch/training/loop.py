"""The loop: an epoch of training, a pass of validation; to be read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from flopwatch.training.clock import FIRST, WINDOWS, Clock, Lap, Window
from flopwatch.training.loading import Order, sizes
from flopwatch.training.metrics import Meter, Scores
from flopwatch.training.precision import Telemetry, Verdict
from flopwatch.training.recipes import Recipe


class Trained(Protocol):
    """What the loop needs of a network at its precision; `training.precision.Running` is one, and says what each does."""

    model: Any

    @property
    def optimizer(self) -> Any: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def verdict(self) -> Verdict | None: ...
    def forward(self, *inputs: Any) -> Any: ...
    def backward(self, loss: Any) -> None: ...
    def step(self) -> bool: ...
    def zero(self) -> None: ...


@dataclass(slots=True)
class Position:
    """Where a run is: the epoch, from 0 on, and how many of its batches are done."""

    epoch: int = 0
    batch: int = 0


def never(done: int) -> bool:
    """No window ends for the sake of a checkpoint."""
    return False


class Loop:
    """Trains and validates one network on one device.

    `places` are the outputs of a head of `head` ones that stand for the classes of the data. `between` is called at the edge of
    each window with the number of batches done, when the processor has finished and the clock stands still; the run may be
    saved there. `due` says, after so many batches of an epoch, that a window has to end for that. A network that is `compiled`
    is compiled once more for the first batch of another size, the last of an epoch: it is timed with the first batches.
    """

    def __init__(
        self,
        trained: Trained,
        recipe: Recipe,
        *,
        head: int,
        device: str,
        clock: Clock,
        places: Sequence[int] = (),
        between: Callable[[int], None] = lambda done: None,
        due: Callable[[int], bool] = never,
        compiled: bool = False,
    ) -> None:
        import torch

        self.trained = trained
        self.recipe = recipe
        self.position = Position()
        self.lap = Lap()
        self.meter = Meter(head, device)
        self.loss = torch.nn.CrossEntropyLoss(label_smoothing=recipe.label_smoothing)
        self._head, self._device, self._clock, self._between, self._due = head, device, clock, between, due
        ordered = tuple(places) == tuple(range(len(places)))
        self._places = None if ordered else torch.tensor(places, device=device)
        self._layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        self._cold = True  # the first batches of this process are yet to come
        self._odd = compiled  # and so is the first batch of another size

    def train(self, loader: Any, order: Order, images: int) -> Verdict | None:
        """Train for what is left of the epoch at `position`; `lap` and `meter` then tell how it went. A verdict: training is over.

        Batches come from `loader`, whose sampler is `order` over so many `images`. The gradient of an update is that of the
        mean loss over all images of its group of `accumulate` batches, also in a last group that is shorter.
        """
        at, accumulate = self.position, self.recipe.accumulate
        batches = sizes(images, self.recipe.batch)
        order.epoch, order.start = at.epoch, at.batch
        length = ceil(len(batches) / WINDOWS)
        odd = len(batches) - 1 if self._odd and batches[-1] != batches[0] else 0
        self.trained.model.train()
        self.trained.zero()
        self._clock.begin()
        for pictures, labels in self._clock.batches(loader):
            group = at.batch - at.batch % accumulate
            together = sum(batches[group : group + accumulate])
            if at.batch == group:
                self._set_rate(at.batch / len(batches))
            pictures, labels = self.moved(pictures, labels)
            outputs = self.trained.forward(pictures)
            loss = self.loss(outputs, labels)
            self.trained.backward(loss * (len(labels) / together))
            self.meter.add(outputs.detach(), labels, loss)
            self._clock.count(len(labels))
            at.batch += 1
            last = at.batch == len(batches)
            if at.batch % accumulate and not last:
                continue
            self.trained.step()
            self.trained.zero()
            full = self._clock.pending >= (FIRST if self._cold else length)
            if full or last or at.batch == odd or self.trained.verdict or self._due(at.batch):
                self._keep(self._clock.end(), apart=self._cold or (last and odd > 0))
                self.meter.settle()
                if self.trained.telemetry.verdict is not None:
                    return self.trained.verdict
                if not last:
                    self._between(at.batch)
                    self._clock.begin()
        self._odd = self._odd and odd == 0
        return None

    def validate(self, loader: Any, order: Order) -> tuple[Scores, Lap]:
        """What the network knows about the images of a loader, each once, and how long that took."""
        import torch

        order.epoch = order.start = 0
        meter, lap = Meter(self._head, self._device), Lap()
        self.trained.model.eval()
        self._clock.begin()
        with torch.no_grad():
            for pictures, labels in self._clock.batches(loader):
                pictures, labels = self.moved(pictures, labels)
                outputs = self.trained.forward(pictures)
                meter.add(outputs, labels, torch.nn.functional.cross_entropy(outputs, labels))
                self._clock.count(len(labels))
        lap.windows.append(self._clock.end())
        return meter.scores(), lap

    def next_epoch(self) -> None:
        """Go on to the next epoch, with a meter and a lap of its own."""
        self.position = Position(self.position.epoch + 1)
        self.lap = Lap()
        self.meter = Meter(self._head, self._device)

    def moved(self, pictures: Any, labels: Any) -> tuple[Any, Any]:
        """A batch on the device, in the layout of the recipe, with labels that are outputs of the head."""
        pictures = pictures.to(self._device, non_blocking=True, memory_format=self._layout)
        labels = labels.to(self._device, non_blocking=True)
        return pictures, labels if self._places is None else self._places[labels]

    @property
    def rate(self) -> float:
        """The learning rate that the optimizer has now."""
        return float(self.trained.optimizer.param_groups[0]["lr"])

    def _set_rate(self, fraction: float) -> None:
        rate = self.recipe.lr_at(self.position.epoch, fraction)
        for group in self.trained.optimizer.param_groups:
            group["lr"] = rate

    def _keep(self, window: Window, *, apart: bool) -> None:
        """Put a window into the lap; those `apart`, of which an epoch can have several, are its first batches."""
        if not apart:
            self.lap.windows.append(window)
        elif self.lap.first is None:
            self.lap.first = window
        else:
            self.lap.first.add(window)
        self._cold = False
