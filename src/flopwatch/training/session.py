"""A run from its job to its result: data, network, what is measured beforehand, epochs, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.randomness import RandomStates
from flopwatch.training import data, labels, loading, memory, networks, precision, results, rows, work
from flopwatch.training.beforehand import Before, look
from flopwatch.training.clock import Clock, Lap, synchronizer
from flopwatch.training.job import Job
from flopwatch.training.loop import Loop
from flopwatch.training.metrics import Scores
from flopwatch.training.recipes import Recipe
from flopwatch.training.results import Document
from flopwatch.training.rows import Row
from flopwatch.training.saving import Saver


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens and what it leaves behind: nothing of this changes what is computed.

    `output` is the folder for result and checkpoints, None for neither. In mid epoch the run is saved every `save_steps` batches
    (0: never) and `save_seconds`. `probe`: measure loader and processor by themselves first. `cache` is for data sets;
    `policy`, skip or fail, has every picture looked at first.
    """

    device: str = "cpu"
    output: Path | None = None
    save_steps: int = 0
    save_seconds: float = 600.0
    probe: bool = True
    cache: Path | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on: `say` hears what is going on, `title` the document before the first row, `row` each finished epoch."""

    say: Callable[[str], None] = lambda text: None
    title: Callable[[Document], None] = lambda document: None
    row: Callable[[Row], None] = lambda row: None


def train(
    job: Job, place: Place, watch: Watch, state: dict[str, Any] | None = None, notes: Sequence[str] = ()
) -> Document:
    """Run a job to its end, from a checkpoint's `state` if there is one, and return its document, with `notes` in it.

    Raises UsageError for what makes no sense, CannotMeasureError where memory, disk or a device's abilities do not suffice.
    """
    random = RandomStates()
    try:
        session = Session(job, place, watch, state, notes)
        try:
            return session.evaluate() if job.evaluate else session.train()
        finally:
            session.running.close()
    finally:
        random.restore()


class Session:
    """A run that is under way."""

    def __init__(
        self, job: Job, place: Place, watch: Watch, state: dict[str, Any] | None, notes: Sequence[str]
    ) -> None:
        import torch

        began = time.perf_counter()
        self.job, self.place, self.watch, self.recipe = job, place, watch, job.recipe
        self.precision = precision.find(job.precision, job.overrides)
        networks.check(job.arch)
        watch.say(f"looking at {job.data}")
        self.data = data.find(job.data, scale=job.scale, cache=place.cache, progress=self._pictures_made)
        if place.policy is not None:
            watch.say("looking at each picture")
            report = data.check(self.data.root, progress=self._pictures_seen)
            self.data = data.treated(self.data, report, place.policy)
        self.head, self.outputs, note = labels.head_and_labels(self.data.classes, job.classes, self.data.indices)
        self._check_pictures()
        loading.check_workers(self.recipe.workers, self.recipe.batch, self.recipe.image_size)
        torch.manual_seed(self.recipe.seed)
        watch.say(f"building {job.arch}")
        model = networks.build(job.arch, self.head)
        # Weights of others want pictures as they were trained on; a network that starts from nothing does not mind.
        self.look = networks.look_of(job.arch) if job.weights is not None else networks.Look()
        self.notes = [each for each in (*notes, *self.data.notes, note, self.look.note) if each]
        if state is None:
            self.notes += load_weights(model, job, self.data.name, self.head)
        if self.recipe.channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.work = work.estimate(model, self.first_batch, self.recipe.image_size)
        self.clock = Clock(synchronizer(place.device))
        self.training = self._loader(self.pictures(training=True), self.recipe.seed)
        self.validation = self._loader(self.pictures(training=False), None)
        self.before = Before() if job.evaluate else look(self, model)
        self.running = self.run(model)
        self.notes += [each for each in self.running.notes if each not in self.notes]
        self.saver = Saver(self, place)
        self.loop = self.loop_of(self.running, between=self._between, due=self.saver.due)
        self.log = results.Log(place.output)
        self.rows: list[Row] = []
        self.best: dict[str, Any] | None = None
        if state is not None:
            self.saver.resume(state)
        memory.reset(place.device)
        self.document = rows.document(self, time.perf_counter() - began)

    # -- the run -----------------------------------------------------------------------------------------------------

    def train(self) -> Document:
        """Train to the last epoch, or until the run diverges."""
        self.log.write(self.document)
        self.watch.title(self.document)
        for row in self.rows:  # of before the run was taken up again
            self.watch.row(row)
        if self.loop.position.epoch >= self.recipe.epochs:
            self.document["notes"].append(f"all {self.recipe.epochs} epochs were done already; --epochs N adds to them")
        while self.loop.position.epoch < self.recipe.epochs:
            epoch = self.loop.position.epoch + 1
            with memory.explained(self.what):
                verdict = self.loop.train(*self.training, len(self.data.train))
                scored = None if verdict else self._validate(epoch)
            row = rows.trained(self, epoch, scored)
            self._finish(row)
            if verdict is not None:
                self.document["diverged"] = {"epoch": epoch, **asdict(verdict)}
                self.document["notes"].append(str(verdict))
                break
            self.loop.next_epoch()
            self.saver.after_epoch(row)
        return self._close()

    def evaluate(self) -> Document:
        """Validate once, without training."""
        self.watch.title(self.document)
        with memory.explained(self.what, trial=True):
            scored = self._validate(0)
        self._finish(rows.evaluated(self, *scored))
        return self._close()

    def _validate(self, epoch: int) -> tuple[Scores, Lap]:
        self.watch.say(f"epoch {epoch}: validating" if epoch else "validating")
        return self.loop.validate(*self.validation)

    def _finish(self, row: Row) -> None:
        self.rows.append(row)
        self.document["memory"]["peak"] = row["peak_memory"]
        self.document["telemetry"] = self.running.telemetry.as_json()
        self.log.write(self.document, row)
        self.watch.row(row)

    def _close(self) -> Document:
        self.document["complete"] = True
        self.document["notes"] += rows.remarks(self)
        self.log.write(self.document)
        return self.document

    def _between(self, done: int) -> None:
        batches = len(loading.sizes(len(self.data.train), self.recipe.batch))
        rate = self.loop.lap.rate
        speed = f", {rate:.1f} images/s" if rate else ""
        self.watch.say(f"epoch {self.loop.position.epoch + 1}: {done} of {batches} batches{speed}")
        self.saver.between(done)

    # -- what it is made of ------------------------------------------------------------------------------------------

    @property
    def what(self) -> str:
        """The run, for sentences about its failures."""
        size = self.recipe.image_size
        return f"{self.job.arch} on pictures of {size} × {size}, {self.recipe.batch} at once, on {self.place.device}"

    @property
    def first_batch(self) -> int:
        """Images in the first batch, which can be all there are."""
        return min(self.recipe.batch, len(self.data.train) or len(self.data.val))

    def pictures(self, *, training: bool) -> Any:
        """The pictures to learn from, or those to validate on, as tensors."""
        recipe, look = self.recipe, self.look
        colours: dict[str, Any] = {"mean": look.mean, "std": look.std, "interpolation": look.interpolation}
        size = recipe.image_size
        if training:
            scale = (recipe.scale, 1.0)
            return data.images(self.data.train, size=size, training=True, seed=recipe.seed, scale=scale, **colours)
        resize = round((look.margin or recipe.margin) * size)
        return data.images(self.data.val, size=size, training=False, resize=resize, **colours)

    def run(self, model: Any) -> precision.Running:
        """A network at the precision, with its optimizer; it is changed in place."""
        # On a GPU losses are looked at where a window ends, when the processor has been waited for anyway.
        watching = {} if self.place.device == "cpu" else {"watch": 2**31}
        running = precision.Running(model, make_optimizer(self.recipe), self.precision, self.place.device, **watching)
        if self.job.compile:
            import torch

            running.model = torch.compile(running.module)
        return running

    def loop_of(self, running: precision.Running, **options: Any) -> Loop:
        """The loop around a network."""
        return Loop(
            running,
            self.recipe,
            head=self.head,
            device=self.place.device,
            clock=self.clock,
            places=self.outputs,
            compiled=self.job.compile,
            **options,
        )

    def _loader(self, pictures: Any, seed: int | None) -> tuple[Any, loading.Order]:
        recipe = self.recipe
        order = loading.Order(len(pictures), recipe.batch, seed, pictures)
        loader = loading.loader(pictures, order, workers=recipe.workers, device=self.place.device, seed=recipe.seed)
        return loader, order

    def _pictures_made(self, done: int, of: int) -> None:
        self._say_now_and_then("made", done, of)

    def _pictures_seen(self, done: int, of: int) -> None:
        self._say_now_and_then("looked at", done, of)

    def _say_now_and_then(self, what: str, done: int, of: int) -> None:
        if done % max(1, of // 10) == 0:
            self.watch.say(f"{done} of {of} pictures {what}")

    def _check_pictures(self) -> None:
        if not self.data.val:
            raise UsageError(f"{self.job.data} has no pictures to validate on.", todo="Put some into its folder val.")
        if not self.data.train and not self.job.evaluate:
            raise UsageError(f"{self.job.data} has no pictures to train on.", todo="Put some into its folder train.")


def make_optimizer(recipe: Recipe) -> Callable[[Sequence[Any]], Any]:
    """What makes the recipe's optimizer for a list of parameters."""
    import torch

    def make(parameters: Sequence[Any]) -> Any:
        if recipe.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=recipe.lr, weight_decay=recipe.weight_decay)
        return torch.optim.SGD(
            parameters,
            lr=recipe.lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.nesterov and recipe.momentum > 0,
        )

    return make


def load_weights(model: Any, job: Job, name: str, head: int) -> tuple[str, ...]:
    """Put the weights that a job starts from into its network; notes on what that means for the figures."""
    if job.weights is None:
        return ()
    published = job.weights == "published"
    state = networks.published(job.arch) if published else networks.read(Path(job.weights))
    source = "the published weights" if published else job.weights
    notes = networks.load(model, state, source, exact=job.evaluate)
    known = "imagenette" in name.lower() and "made" not in name.lower() and (published or head == networks.IMAGENET)
    return (*notes, labels.CONTAMINATED) if known else notes


def pick_device(text: str | None) -> str:
    """The device that somebody asked for, or the best there is; raises UsageError for one that is not there."""
    import torch

    mps = getattr(torch.backends, "mps", None)
    there = {"cuda": torch.cuda.is_available(), "mps": bool(mps and mps.is_available()), "cpu": True}
    if text is None:
        return next(name for name, here in there.items() if here)
    kind, _, number = text.partition(":")
    if not there.get(kind, False) or (number and not number.isdecimal()):
        names = ", ".join(name for name, here in there.items() if here)
        raise UsageError(f"There is no device {text!r} here.", todo=f"Choose one of: {names}.")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise UsageError(f"There is no device {text!r} here.", seen=f"CUDA sees {torch.cuda.device_count()}.")
    return text
