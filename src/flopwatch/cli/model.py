"""`flopwatch model`: how much a model needs and how much it executes, layer by layer."""

from __future__ import annotations

from typing import TextIO

import click
import msgspec

from flopwatch import counters, estimating, explaining, explanation_views, model_views, models, reports
from flopwatch.cli.output import check_output, check_strict, deliver, progress
from flopwatch.errors import UsageError
from flopwatch.flops.convention import CONVENTIONS
from flopwatch.subjects.model import Phase, Request
from flopwatch.subjects.model.inputs import DTYPES


@click.command("model", short_help="What a model needs and executes, layer by layer.")
@click.option("--measure", is_flag=True, help="Run the model as well, and count what it executes.")
@click.option("--explain", is_flag=True, help="Name the causes of the gap between estimate and measurement.")
@click.option(
    "--counter",
    type=click.Choice(("auto", *counters.NAMES)),
    default="instrumented",
    show_default=True,
    help="With --measure: how operations are seen; hardware costs the model nothing.",
)
@click.option("--train", is_flag=True, help="A training step: forward, loss, backward, SGD.")
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
    "--dtype", type=click.Choice(tuple(DTYPES)), help="Of model and input (default: what a config.json says, or fp32)."
)
@click.option(
    "--sequence",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of a language model given by its config.json.",
)
@click.option("--decode", is_flag=True, help="One more token for each sequence, with --sequence tokens in the cache.")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=N", help="A size that an ONNX file leaves open, by its name."
)
@click.option(
    "--image", metavar="FILE", help="Feed a photograph; skimage:coffee is one that scikit-image brings along."
)
@click.option(
    "--columns",
    type=click.Choice(model_views.COLUMNS),
    default="work",
    show_default=True,
    help="Columns of the text table: MAC and FLOP, FLOP by operation, or bytes and intensity.",
)
@click.option("--tree", is_flag=True, help="Show layers as a tree; each has the work of those below it, too.")
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
@click.option("--csv", "as_csv", is_flag=True, help="Print all columns as CSV.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the result to FILE; .json saves the record, .csv and .md choose these formats.",
)
@click.option("--strict", is_flag=True, help="Exit with code 3 if anything is unknown or partial.")
@click.argument("name")
def command(
    measure: bool,
    explain: bool,
    counter: str,
    train: bool,
    by: str,
    batch: int | None,
    shapes: tuple[str, ...],
    dtype: str | None,
    sequence: int | None,
    decode: bool,
    dims: tuple[str, ...],
    image: str | None,
    columns: str,
    tree: bool,
    depth: int | None,
    sort: str | None,
    convention: str,
    lanes: str | None,
    as_json: bool,
    as_csv: bool,
    markdown: bool,
    output: str | None,
    strict: bool,
    name: str,
) -> int:
    """Tell what one inference of the model NAME needs: MAC, FLOP, parameters and bytes by layer, operator or function.

    NAME is a model of torchvision or timm, chainer:NAME for one of Chainer's (googlenet, resnet50, resnet101, resnet152,
    vgg16), the file of an ONNX model or of a Caffe prototxt, the folder of a Hugging Face config.json, or FILE.py:FACTORY
    for a function of your own that returns a model, or a tuple of the model and the arguments of one call. Estimates come
    from formulas: operators are followed without computing anything. With --measure the model runs as well, with random
    weights, which do not change what is computed: once uncounted, then counted.

    \b
    Examples:
      flopwatch model resnet18
      flopwatch model vit_b_16 --measure --explain
      flopwatch model mine.py:net --train --by op --input 1x128:int64
    """
    form = _form(as_json, as_csv, markdown, output)
    if tree and (by != "layer" or sort is not None):
        raise UsageError("A tree shows layers, in the model's own order.", todo="Leave --by and --sort out.")
    phase: Phase | None = "decode" if decode else "prefill" if sequence is not None else None
    request = Request(name, shapes, batch, dtype, image, sequence=sequence, phase=phase, dims=_dims(dims))
    if measure or explain:
        record = models.measure_model(
            request,
            train=train,
            convention=convention,
            lanes=lanes,
            counter=counter,
            estimated=True,
            progress=progress,
        )
    else:
        record = estimating.estimate_model(request, train=train, convention=convention, progress=progress)

    explanation = explaining.explain(record, record.estimate) if explain and record.estimate is not None else None

    def write(out: TextIO, to_file: bool) -> None:
        kind = form[1] if to_file else form[0]
        if kind == "json":
            document = model_views.document(record, by, depth=depth)
            if explanation is not None:
                document["explanation"] = explanation_views.document(explanation)
            out.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
            return
        if kind == "csv":
            sheets = [model_views.full_sheet(record, by, depth=depth, sort=sort)]
        else:
            sheets = [model_views.sheet(record, by, depth=depth, sort=sort, columns=columns, tree=tree)]
        if explanation is not None:
            causes = explanation_views.explain_sheet(explanation)
            # One file of separated values is one table.
            sheets = [causes] if kind == "csv" else [*sheets, causes]
        for index, sheet in enumerate(sheets):
            out.write("\n" if index else "")
            reports.find(kind).render(sheet, out)

    deliver(write, output)
    if strict:
        check_strict(record)
    return 0


def _dims(texts: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise UsageError(f"{text!r} is not the size of a dimension.", todo="Write --dim NAME=N, as --dim batch=8.")
        found[name] = int(size)
    return found


def _form(as_json: bool, as_csv: bool, markdown: bool, output: str | None) -> tuple[str, str]:
    """The formats for stdout and for a file, whose name may choose another."""
    if as_json + as_csv + markdown > 1:
        raise UsageError("Of --json, --csv and --markdown only one can be asked for.")
    check_output(output)
    asked = "json" if as_json else "csv" if as_csv else "markdown" if markdown else ""
    by_suffix = {"json": "json", "csv": "csv", "md": "markdown"}.get((output or "").rpartition(".")[2], "table")
    return asked or "table", asked or by_suffix
