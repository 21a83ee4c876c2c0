"""A run from its job to its result: data, network, rates by themselves, epochs, checkpoints."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.randomness import RandomStates
from flopwatch.training import checkpoints, data, labels, loading, memory, networks, precision, probes, results, work
from flopwatch.training.clock import Clock, Lap, synchronizer
from flopwatch.training.job import Job
from flopwatch.training.loop import Loop, Position
from flopwatch.training.metrics import chance, wilson
from flopwatch.training.recipes import Recipe
from flopwatch.training.results import Document

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens and what it leaves behind: nothing of this changes what is computed.

    `output` is the folder for result and checkpoints, None for neither. In mid epoch the run is saved every `save_steps` batches
    (0: never) and `save_seconds`. `probe`: measure loader and processor by themselves first. `cache` is for data sets.
    """

    device: str = "cpu"
    output: Path | None = None
    save_steps: int = 0
    save_seconds: float = 600.0
    probe: bool = True
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on: `say` hears what is going on, `row` each finished epoch, `title` what the rows are about, before the first."""

    say: Callable[[str], None] = lambda text: None
    title: Callable[[Document], None] = lambda document: None
    row: Callable[[Row], None] = lambda row: None


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


def train(job: Job, place: Place, watch: Watch, state: dict[str, Any] | None = None) -> Document:
    """Run a job to its end, from a checkpoint's `state` if there is one, and return its document.

    Raises UsageError for what makes no sense, CannotMeasureError where memory, disk or a device's abilities do not suffice.
    """
    with Session(job, place, watch, state) as session:
        return session.evaluate() if job.evaluate else session.train()


class Session:
    """A run that is under way."""

    def __init__(self, job: Job, place: Place, watch: Watch, state: dict[str, Any] | None) -> None:
        import torch

        began = time.perf_counter()
        self.job, self.place, self.watch, self.recipe = job, place, watch, job.recipe
        self.device = place.device
        self.precision = precision.find(job.precision, job.overrides)
        networks.check(job.arch)
        watch.say(f"looking at {job.data}")
        self.data = data.find(job.data, scale=job.scale, cache=place.cache, **_made(job))
        self.head, self.outputs, head_note = labels.head_and_labels(
            self.data.classes, job.classes, getattr(self.data, "indices", ())
        )
        if not self.data.val or not (self.data.train or job.evaluate):
            raise UsageError(f"{job.data} has no pictures {'to validate on' if not self.data.val else 'to train on'}.")
        loading.check_workers(self.recipe.workers, self.recipe.batch, self.recipe.image_size)
        self._random = RandomStates()
        torch.manual_seed(self.recipe.seed)
        watch.say(f"building {job.arch}")
        model = networks.build(job.arch, self.head)
        self.notes = [note for note in (*self.data.notes, head_note) if note]
        if state is None:
            self._weights(model)
        if self.recipe.channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.work = work.estimate(model, self._first_batch, self.recipe.image_size)
        self.clock = Clock(synchronizer(self.device))
        self.training = self._loader(training=True)
        self.validation = self._loader(training=False)
        self.probed: dict[str, Any] = {"compute": None, "loader": None}
        self.census: dict[str, Any] | None = None
        if not job.evaluate:
            self._probe(model)
        self.running = self._running(model)
        self.notes += [note for note in self.running.notes if note not in self.notes]
        self.loop = self._loop(self.running, between=self._between, due=self._due)
        self.log = results.Log(place.output)
        self.rows: list[Row] = []
        self.best: dict[str, Any] | None = None
        self._saved = time.monotonic()
        if state is not None:
            self._resume(state)
        memory.reset(self.device)
        self.document = self._document(time.perf_counter() - began)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.running.close()
        self._random.restore()

    # -- the run -----------------------------------------------------------------------------------------------------

    def train(self) -> Document:
        """Train to the last epoch, or until the run diverges."""
        self.log.write(self.document)
        self.watch.title(self.document)
        while self.loop.position.epoch < self.recipe.epochs:
            epoch = self.loop.position.epoch + 1
            with memory.explained(f"{self.job.arch} with batches of {self.recipe.batch} on {self.device}"):
                verdict = self.loop.train(self.training[0], self.training[1], len(self.data.train))
                scored = None if verdict else self._validate(epoch)
            row = self._row(epoch, scored)
            self._finish(row)
            if verdict is not None:
                self.document["diverged"] = {"epoch": epoch, **asdict(verdict)}
                self.document["notes"].append(str(verdict))
                break
            self.loop.next_epoch()
            self._checkpoint(row)
        return self._close()

    def evaluate(self) -> Document:
        """Validate once, without training."""
        self.watch.title(self.document)
        with memory.explained(f"{self.job.arch} with batches of {self.recipe.batch} on {self.device}", trial=True):
            scored = self._validate(0)
        self._finish(self._row(0, scored))
        return self._close()

    def _validate(self, epoch: int) -> tuple[Any, Lap]:
        self.watch.say(f"epoch {epoch}: validating")
        return self.loop.validate(*self.validation)

    def _finish(self, row: Row) -> None:
        self.rows.append(row)
        self.document["memory"]["peak"] = memory.peak(self.device)
        self.document["telemetry"] = self.running.telemetry.as_json()
        self.log.write(self.document)
        self.watch.row(row)

    def _close(self) -> Document:
        self.document["complete"] = True
        self.document["notes"] += self._remarks()
        self.log.write(self.document)
        return self.document

    # -- what it is made of ------------------------------------------------------------------------------------------

    @property
    def _first_batch(self) -> int:
        return min(self.recipe.batch, len(self.data.train) or len(self.data.val))

    def _weights(self, model: Any) -> None:
        if self.job.weights is None:
            return
        if self.job.weights == "published":
            state, source = networks.published(self.job.arch), "the published weights"
        else:
            state, source = networks.read(Path(self.job.weights)), self.job.weights
        self.notes += networks.load(model, state, source, exact=self.job.evaluate)
        if "imagenette" in self.data.name.lower() and (self.job.weights == "published" or self.head == networks.IMAGENET):
            self.notes.append(labels.CONTAMINATED)

    def _pictures(self, *, training: bool) -> Any:
        recipe = self.recipe
        if training:
            return data.images(
                self.data.train, size=recipe.image_size, training=True, seed=recipe.seed, scale=(recipe.scale, 1.0)
            )
        return data.images(self.data.val, size=recipe.image_size, training=False, seed=recipe.seed)

    def _loader(self, *, training: bool) -> tuple[Any, loading.Order]:
        pictures = self._pictures(training=training)
        order = loading.Order(len(pictures), self.recipe.batch, self.recipe.seed if training else None, pictures)
        return (
            loading.loader(
                pictures, order, workers=self.recipe.workers, device=self.device, seed=self.recipe.seed
            ),
            order,
        )

    def _running(self, model: Any) -> Any:
        running = precision.Running(
            model, make_optimizer(self.recipe), self.precision, self.device, **self._watching()
        )
        if self.job.compile:
            import torch

            running.model = torch.compile(running.module)
        return running

    def _watching(self) -> dict[str, int]:
        # Losses are looked at where a window ends, when the processor has been waited for anyway.
        return {} if self.device == "cpu" else {"watch": 2**31}

    def _loop(self, running: Any, **options: Any) -> Loop:
        return Loop(
            running,
            self.recipe,
            head=self.head,
            device=self.device,
            clock=self.clock,
            places=self.outputs,
            **options,
        )

    def _probe(self, model: Any) -> None:
        """On a copy of the network: prove the precision, measure processor and loader by themselves. Nothing of the run changes."""
        import copy

        import torch

        recipe = self.recipe
        kept = RandomStates()
        what = f"{self.job.arch} on pictures of {recipe.image_size} × {recipe.image_size}, batches of {recipe.batch}"
        try:
            with memory.explained(what, trial=True), self._running(copy.deepcopy(model)) as scratch:
                loop = self._loop(scratch)
                pictures = torch.randn(self._first_batch, 3, recipe.image_size, recipe.image_size)
                wanted = torch.randint(len(self.data.classes), (len(pictures),))
                pictures, wanted = loop.moved(pictures, wanted)
                self._check_last(scratch, pictures)
                self.watch.say("looking at datatypes")
                taken = precision.census(scratch, (pictures, wanted))
                self.census = taken.as_json()
                if self.place.probe:
                    self.watch.say("measuring the processor by itself")
                    self.probed["compute"] = probes.compute(scratch, loop.loss, pictures, wanted, self.clock)
                del loop, pictures, wanted
            if self.place.probe:
                self.watch.say("measuring the loader by itself")
                images = self._pictures(training=True)
                endless = loading.Endless(len(images), self._first_batch, recipe.seed)
                alone = loading.loader(
                    images, endless, workers=recipe.workers, device=self.device, seed=recipe.seed, persistent=False
                )
                self.probed["loader"] = probes.loader(alone, recipe.workers, self.clock)
        finally:
            kept.restore()
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()

    def _check_last(self, scratch: Any, pictures: Any) -> None:
        """A last batch of one image breaks batch normalisation in some networks: better said now than after an epoch."""
        if loading.sizes(len(self.data.train), self.recipe.batch)[-1] != 1:
            return
        import torch

        scratch.model.train()
        try:
            with torch.no_grad():
                scratch.forward(pictures[:1])
        except ValueError as error:
            raise UsageError(
                f"The last batch of an epoch has one picture, from which {self.job.arch} cannot learn.",
                seen=f"{error}.",
                todo="Choose another --batch.",
            ) from error

    # -- rows and documents ------------------------------------------------------------------------------------------

    def _row(self, epoch: int, scored: tuple[Any, Lap] | None) -> Row:
        lap, meter = self.loop.lap, self.loop.meter.scores()
        scores, took = scored if scored is not None else (None, None)
        trained = not self.job.evaluate
        rate = lap.rate if trained else None
        telemetry = self.running.telemetry
        interval = wilson(scores.hits1, scores.n) if scores is not None else None
        flop_rate = self.work.rate(rate, self.recipe.batch * self.recipe.accumulate)
        compute, loader = (each.per_second if each else None for each in (self.probed["compute"], self.probed["loader"]))
        return {
            "epoch": epoch,
            "top1": scores.top1 if scores else None,
            "top1_low": interval[0] if interval else None,
            "top1_high": interval[1] if interval else None,
            "top5": scores.top5 if scores else None,
            "n": scores.n if scores else 0,
            "loss": scores.loss if scores else None,
            "train_top1": meter.top1,
            "train_loss": meter.loss,
            "train_n": meter.n,
            "lr": self.loop.rate if trained else None,
            "seconds": lap.seconds if trained else (took.seconds if took else 0.0),
            "validation_seconds": took.seconds if took else None,
            "first_batches": asdict(lap.first) if lap.first else None,
            "steady": lap.steady if trained else None,
            "images_per_second": {
                "end_to_end": rate,
                "compute": compute,
                "loader": loader,
                "validation": took.rate if took else None,
            },
            "data_wait": lap.waited if trained else None,
            "trend": lap.trend,
            "flop_per_second": flop_rate,
            "mfu": None,
            "updates": telemetry.updates,
            "skipped": telemetry.skipped,
            "scale": telemetry.scale,
            "peak_memory": memory.peak(self.device),
        }

    def _document(self, start_up: float) -> Document:
        top1, top5 = chance([item.label for item in self.data.val], len(self.data.classes))
        probed = {name: asdict(rate) if rate else None for name, rate in self.probed.items()}
        return {
            "schema": results.SCHEMA,
            "kind": "training",
            "complete": False,
            "arch": self.job.arch,
            "data": {**self.data.as_json(), "fingerprint": self._fingerprint()},
            "job": self.job.as_json(),
            "recipe": self.recipe.as_json(),
            "device": self.device,
            "head": self.head,
            "chance": {"top1": top1, "top5": top5 if self.head >= 5 else None},
            "precision": {**self.precision.as_json(), **(self.census or {})},
            "telemetry": None,
            "work": self.work.as_json(),
            "peak_flop_per_second": None,
            "probes": probed,
            "start_up_seconds": start_up,
            "memory": {"peak": None, "of": "host" if self.device == "cpu" else "device"},
            "machine": results.surroundings(self.device),
            "versions": results.torch_versions(),
            "rows": self.rows,
            "best": self.best,
            "diverged": None,
            "notes": list(self.notes),
        }

    def _remarks(self) -> list[str]:
        """What has to be said about the figures."""
        said = []
        best = self.document["chance"]
        if best["top1"] is not None:
            also = f", top-5 {best['top5']:.2%}" if best["top5"] is not None else "; no top-5 with fewer than 5 classes"
            said.append(f"guessing gives top-1 {best['top1']:.2%}{also}; validated on {len(self.data.val)} images")
        if self.job.evaluate:
            return said
        last = self.rows[-1] if self.rows else None
        if last is not None:
            rates = last["images_per_second"]
            cpus = int(self.document["machine"]["cpus"])
            said.append(
                probes.advice(last["data_wait"], rates["compute"], rates["loader"], self.recipe.workers, cpus)
            )
            if not last["steady"]:
                said.append("an epoch is too short to leave its first batches out: images a second hold them")
            if last["trend"] is not None and last["trend"] < 0.9:
                said.append(f"within the last epoch the rate fell to {last['trend']:.0%} of its beginning")
            if last["flop_per_second"] is not None:
                said.append(
                    f"{last['flop_per_second'] / 1e9:.1f} GFLOP/s by formulas; the processor's peak is not known, so no "
                    "share of it is given"
                )
            elif self.work.why or self.work.unknown:
                said.append(f"FLOP not known: {self.work.why or ', '.join(self.work.unknown)}")
        return [each for each in said if each]

    def _fingerprint(self) -> str:
        """What tells two lists of pictures apart: names and labels."""
        digest = hashlib.sha256()
        for items in (self.data.train, self.data.val):
            for item in items:
                name = Path(item.path).name if not item.path.startswith(str(self.data.root)) else item.path
                digest.update(f"{name.removeprefix(str(self.data.root))}\0{item.label}\n".encode())
            digest.update(b"\n")
        return digest.hexdigest()[:16]

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _due(self, done: int) -> bool:
        if self.place.output is None:
            return False
        by_steps = self.place.save_steps > 0 and done % self.place.save_steps == 0
        return by_steps or time.monotonic() - self._saved >= self.place.save_seconds

    def _between(self, done: int) -> None:
        batches = len(loading.sizes(len(self.data.train), self.recipe.batch))
        rate = self.loop.lap.rate
        speed = f", {rate:.1f} images/s" if rate else ""
        self.watch.say(f"epoch {self.loop.position.epoch + 1}: {done} of {batches} batches{speed}")
        if self._due(done):
            self._save()

    def _checkpoint(self, row: Row) -> None:
        """Save at the end of an epoch, with the weights apart if they are the best so far."""
        better = row["top1"] is not None and (self.best is None or row["top1"] > self.best["top1"])
        if better:
            self.best = {"epoch": row["epoch"], "top1": row["top1"]}
            self.document["best"] = self.best
        if self.place.output is None:
            return
        if better:
            weights = {"arch": self.job.arch, "best": self.best, "state_dict": self.running.module.state_dict()}
            checkpoints.save(weights, self.place.output / checkpoints.BEST)
        self._save()
        self.log.write(self.document)

    def _save(self) -> None:
        assert self.place.output is not None
        state = {
            "job": self.job.as_json(),
            "fingerprint": self._fingerprint(),
            "position": asdict(self.loop.position),
            "lap": self.loop.lap.as_state(),
            "meter": self.loop.meter.as_state(),
            "running": self.running.state_dict(),
            "random": checkpoints.random_states(),
            "rows": self.rows,
            "best": self.best,
        }
        checkpoints.save(state, self.place.output / checkpoints.NAME)
        self._saved = time.monotonic()

    def _resume(self, state: dict[str, Any]) -> None:
        if state["fingerprint"] != self._fingerprint():
            raise UsageError(
                f"The checkpoint was made on other pictures than those of {self.job.data}.",
                todo="Give the same data, or start a new run without --resume.",
            )
        self.running.load_state_dict(state["running"])
        self.loop.position = Position(**state["position"])
        self.loop.lap = Lap.from_state(state["lap"])
        self.loop.meter.load_state(state["meter"])
        self.rows += state["rows"]
        self.best = state["best"]
        checkpoints.restore_random(state["random"])


def _made(job: Job) -> dict[str, Any]:
    """Size and seed of a set that is made here: pictures a little larger than what is cut out of them."""
    return {"seed": 0} if job.data.startswith("made:") else {}
