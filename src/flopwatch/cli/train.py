"""`flopwatch train`: what training a network costs and how well it learns, epoch by epoch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

from flopwatch import reports
from flopwatch.cli import INTERRUPTED
from flopwatch.cli.output import deliver, progress
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.training import epoch_lines, job, networks, recipes, results

DEFAULT_ARCH = "resnet18"
DEFAULT_PRECISION = "fp32-ieee"


@click.command("train", short_help="What training a network costs, and how well it learns.")
@click.option("-a", "--arch", metavar="ARCH", help=f"Classifier of torchvision or timm [default: {DEFAULT_ARCH}].")
@click.option(
    "--data",
    metavar="DIR",
    help="Folder with train/ and val/, each with a folder for each class; or imagenette-160, imagenette-320, "
    "imagenette-full, made:imagenette, fashion-mnist.",
)
@click.option("--data-scale", type=float, metavar="SHARE", help="Use this share of the pictures of each class.")
@click.option("--recipe", metavar="NAME", help=f"imagenet-example, fast, small or few [default: {recipes.DEFAULT}].")
@click.option("--epochs", type=int, metavar="N", help="Passes over the training pictures.")
@click.option("--batch", type=int, metavar="N", help="Pictures in a batch.")
@click.option("--accumulate", type=int, metavar="N", help="Batches for one update of the weights.")
@click.option("--lr", type=float, metavar="RATE", help="Learning rate: the first, or the highest, of the schedule.")
@click.option("--image-size", type=int, metavar="N", help="Side of the pictures in pixels.")
@click.option("--classes", type=int, metavar="N", help="Width of the head; with 1000, labels are those of ImageNet.")
@click.option("--precision", metavar="PRESET", help=f"Preset, as O2 or O2,scaler=128 [default: {DEFAULT_PRECISION}].")
@click.option("--device", metavar="NAME", help="cpu, cuda, cuda:N or mps [default: the best there is].")
@click.option("--workers", type=int, metavar="N", help="Processes that load pictures.")
@click.option("--seed", type=int, metavar="N", help="Of weights, order and crops.")
@click.option("--channels-last", is_flag=True, default=None, help="Keep the channels of a pixel together in memory.")
@click.option("--compile", "compiled", is_flag=True, default=None, help="Compile the network with torch.compile.")
@click.option("--weights", metavar="FILE", help="Start from a state_dict.")
@click.option("--pretrained", is_flag=True, help="Start from the weights that the authors published.")
@click.option("--evaluate", is_flag=True, default=None, help="Validate once, without training.")
@click.option("--resume", metavar="DIR", help="Go on from the checkpoint in a run's folder.")
@click.option("--output", metavar="DIR", help="Folder for run.json, epochs.csv and checkpoints, made if needed.")
@click.option("--save-steps", type=click.IntRange(min=0), default=0, metavar="N", help="Save every N batches, too.")
@click.option(
    "--save-seconds",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="S",
    help="Save within an epoch when the last checkpoint is this old.",
)
@click.option("--no-probe", is_flag=True, help="Do not measure loader and processor by themselves first.")
@click.option("--check-data", metavar="DIR", help="Look for files that will make trouble, and do nothing else.")
@click.option(
    "--policy",
    type=click.Choice(("skip", "fail")),
    help="Look at every picture first; leave out those that cannot be read, or refuse to train.",
)
@click.option("--cache", metavar="DIR", help="Where data sets are made or downloaded to.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
def command(
    arch: str | None,
    data: str | None,
    data_scale: float | None,
    recipe: str | None,
    epochs: int | None,
    batch: int | None,
    accumulate: int | None,
    lr: float | None,
    image_size: int | None,
    classes: int | None,
    precision: str | None,
    device: str | None,
    workers: int | None,
    seed: int | None,
    channels_last: bool | None,
    compiled: bool | None,
    weights: str | None,
    pretrained: bool,
    evaluate: bool | None,
    resume: str | None,
    output: str | None,
    save_steps: int,
    save_seconds: float,
    no_probe: bool,
    check_data: str | None,
    policy: str | None,
    cache: str | None,
    as_json: bool,
) -> int:
    """Train a classifier on pictures and tell what it costs: seconds, images a second, accuracy and memory of each epoch.

    Images a second are given three times: end to end, of the processor by itself, of the loader by itself. A run with
    --output is saved after each epoch and within, and --resume goes on as if it had never stopped.

    \b
    Examples:
      flopwatch train -a resnet18 --data made:imagenette --data-scale 0.02 --image-size 64 --epochs 2 --batch 32
      flopwatch train -a resnet50 --data imagenette-320 --recipe fast --precision O2 --output run
      flopwatch train --resume run
      flopwatch train --check-data pictures
    """
    if check_data is not None:
        return _check(check_data, as_json)
    if weights is not None and pretrained:
        raise UsageError("Of --weights and --pretrained only one can be asked for.")
    changed = {
        "epochs": epochs,
        "batch": batch,
        "accumulate": accumulate,
        "lr": lr,
        "image_size": image_size,
        "workers": workers,
        "seed": seed,
        "channels_last": channels_last,
    }
    started = {
        "arch": arch,
        "data": data,
        "precision": precision,
        "scale": data_scale,
        "classes": classes,
        "weights": "published" if pretrained else weights,
        "evaluate": evaluate,
        "compile": compiled,
    }
    asked, state, notes = _asked(started, changed, recipe, resume)

    from flopwatch.training import session

    place = session.Place(
        device=session.pick_device(device),
        output=_folder(output, resume),
        save_steps=save_steps,
        save_seconds=save_seconds,
        probe=not no_probe,
        cache=Path(cache) if cache is not None else None,
        policy=policy,
    )
    watch = session.Watch(progress)
    if not as_json:
        watch = session.Watch(progress, _printed(epoch_lines.heading), _printed(epoch_lines.line))
    try:
        document = session.train(asked, place, watch, state, notes)
    except KeyboardInterrupt:
        saved = place.output is not None and (place.output / "checkpoint.pt").exists()
        more = f"go on with: flopwatch train --resume {place.output}" if saved else "nothing was saved."
        click.echo(f"flopwatch: interrupted; {more}", err=True)
        return INTERRUPTED

    def write(out: TextIO, to_file: bool) -> None:
        if as_json:
            out.write(results.encode(document).decode())
        else:
            out.writelines(f"{note}\n" for note in document["notes"])

    deliver(write, None)
    return 0


def _asked(
    started: dict[str, Any], changed: dict[str, Any], recipe: str | None, resume: str | None
) -> tuple[job.Job, dict[str, Any] | None, tuple[str, ...]]:
    """The job of the options, or that of a checkpoint with its state; notes on whose value holds."""
    if resume is not None:
        from flopwatch.training import checkpoints

        networks.require("torch", "torchvision")
        state = checkpoints.load(checkpoints.find(resume))
        asked, notes = job.resumed(job.from_json(state["job"]), {**started, **changed, "recipe": recipe})
        return asked, state, notes
    if started["data"] is None:
        raise UsageError(
            "There is nothing to train on.", todo="Give a folder with --data DIR, or --data made:imagenette."
        )
    found = recipes.find(recipe or recipes.DEFAULT).with_(**changed)
    given = {name: value for name, value in started.items() if value is not None}
    networks.require("torch", "torchvision")
    return job.Job(**{"arch": DEFAULT_ARCH, "precision": DEFAULT_PRECISION, **given, "recipe": found}), None, ()


def _folder(output: str | None, resume: str | None) -> Path | None:
    """The folder of a run, made if it is not there; a resumed run goes on in its own."""
    if output is None and resume is not None:
        found = Path(resume)
        return found if found.is_dir() else found.parent
    if output is None:
        return None
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {output!r} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"Nothing may be written into {output!r}: permission denied.")
    if resume is None and (folder / "checkpoint.pt").exists():
        raise UsageError(
            f"{output!r} holds the checkpoint of another run.",
            todo=f"Go on with --resume {output}, or name a new folder.",
        )
    return folder


def _printed(text: Callable[[Any], str]) -> Callable[[Any], None]:
    """A watcher that prints, and does not mind a reader who has left."""

    def show(what: Any) -> None:
        deliver(lambda out, to_file: out.writelines([text(what), "\n"]), None)

    return show


def _check(folder: str, as_json: bool) -> int:
    """The doctor of data sets; its code is that of a data set that cannot be trained on if something is bad or wrong."""
    from flopwatch.training import data

    networks.require("PIL")
    report = data.check(Path(folder))

    def write(out: TextIO, to_file: bool) -> None:
        if as_json:
            out.write(results.encode(report.as_json()).decode())
        else:
            reports.find("table").render(report.sheet(), out)

    deliver(write, None)
    return 0 if report.healthy else CannotMeasureError.exit_code
