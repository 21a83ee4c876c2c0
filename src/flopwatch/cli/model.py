"""`flopwatch model`: count what one step of a model executes, layer by layer."""

from __future__ import annotations

from typing import TextIO

import click
import msgspec

from flopwatch import counters, model_views, models, reports
from flopwatch.cli.output import check_output, check_strict, deliver, progress
from flopwatch.errors import CannotMeasureError
from flopwatch.flops.convention import CONVENTIONS
from flopwatch.subjects.model import Request
from flopwatch.subjects.model.inputs import DTYPES


@click.command("model", short_help="Count what a model executes, layer by layer.")
@click.option("--measure", is_flag=True, help="Run the model and count what it executes.")
@click.option(
    "--counter",
    type=click.Choice(("auto", *counters.NAMES)),
    default="instrumented",
    show_default=True,
    help="How operations are seen; hardware costs the model nothing.",
)
@click.option("--train", is_flag=True, help="Count a training step: forward, loss, backward, SGD.")
@click.option("--by", type=click.Choice(model_views.AXES), default="layer", show_default=True, help="What a row is.")
@click.option("--batch", type=click.IntRange(min=1), metavar="N", help="Inputs in one batch.")
@click.option(
    "--input",
    "shapes",
    multiple=True,
    metavar="SHAPE",
    help="Shape of the input, such as 1x3x224x224 or, for token numbers, 1x128:int64; once for each argument.",
)
@click.option(
    "--dtype", type=click.Choice(tuple(DTYPES)), default="fp32", show_default=True, help="Of model and input."
)
@click.option(
    "--image", metavar="FILE", help="Feed a photograph; skimage:coffee is one that scikit-image brings along."
)
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="Sum layers below N names into the one above.")
@click.option("--sort", type=click.Choice(model_views.SORTS), help="Order of the rows (layers: the model's own).")
@click.option(
    "--convention",
    type=click.Choice(tuple(CONVENTIONS)),
    default="pmu",
    show_default=True,
    help="What an operation is worth.",
)
@click.option("--lanes", type=click.Choice(("full", "active")), help="Lanes of masked instructions to count.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole record as JSON.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the result to FILE; a name that ends in .json saves the record."
)
@click.option("--strict", is_flag=True, help="Exit with code 3 if an instruction is unknown or the record is partial.")
@click.argument("name")
def command(
    measure: bool,
    counter: str,
    train: bool,
    by: str,
    batch: int | None,
    shapes: tuple[str, ...],
    dtype: str,
    image: str | None,
    depth: int | None,
    sort: str | None,
    convention: str,
    lanes: str | None,
    as_json: bool,
    output: str | None,
    strict: bool,
    name: str,
) -> int:
    """Count the floating-point operations of the model NAME, by layer, operator or function.

    NAME is a model of torchvision or timm, chainer:NAME for one of Chainer's (googlenet, resnet50, resnet101, resnet152,
    vgg16), or FILE.py:FACTORY for a function of your own that returns a model, or a tuple of the model and the arguments of
    one call. Weights are random: they do not change what is computed. One step runs uncounted first, then one is counted.

    \b
    Examples:
      flopwatch model resnet18 --measure
      flopwatch model vit_b_16 --measure --train --by op --batch 4
      flopwatch model mine.py:net --measure --input 1x128:int64 --depth 2
    """
    check_output(output, as_json, None, False)
    request = Request(name, shapes, batch, dtype, image)
    if not measure:
        raise CannotMeasureError("Estimates cannot be shown yet.")
    measured = models.measure_model(
        request, train=train, convention=convention, lanes=lanes, counter=counter, progress=progress
    )

    def write(out: TextIO, to_file: bool) -> None:
        if as_json or (to_file and (output or "").endswith(".json")):
            encoded = msgspec.json.encode(model_views.document(measured, by, depth=depth))
            out.write(msgspec.json.format(encoded, indent=1).decode() + "\n")
        else:
            reports.find("table").render(model_views.sheet(measured, by, depth=depth, sort=sort), out)

    deliver(write, output)
    if strict:
        check_strict(measured)
    return 0
