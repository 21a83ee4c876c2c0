"""Options that choose how a result is shown, and the showing; shared by the commands that print records."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TextIO

import click
from rich.console import Console

from flopwatch import reports, views
from flopwatch.errors import CannotMeasureError, IncompleteError, UsageError
from flopwatch.flops.convention import CONVENTIONS
from flopwatch.record import Record, encode
from flopwatch.reports import csv
from flopwatch.sheet import Sheet

TOP = 30


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a record is shown, and how: the options of `show_options` under their own names."""

    by: str | None
    top: int
    convention: str | None
    lanes: str | None
    separator: str | None
    as_json: bool
    markdown: bool
    output: str | None
    strict: bool


def show_options(axes: tuple[str, ...]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorate a command with the options of `Shown`, which it receives checked, as `shown`."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @wraps(function)
        def command(**options: Any) -> int:
            shown = Shown(**{each.name: options.pop(each.name) for each in fields(Shown)})
            check_output(shown.output, shown.as_json, shown.separator, shown.markdown)
            return function(shown=shown, **options)

        decorated: Callable[..., int] = command
        for option in reversed(
            (
                click.option("--by", type=click.Choice(axes), help="Add a row for each process, thread, …"),
                click.option(
                    "--top",
                    type=click.IntRange(min=0),
                    default=TOP,
                    show_default=True,
                    help="Rows of the text table before the rest is summed in one; 0 shows all.",
                ),
                click.option(
                    "--convention",
                    type=click.Choice(tuple(CONVENTIONS)),
                    help="What an operation is worth: pmu (default) counts as Intel's FP_ARITH events do; "
                    "arithmetic leaves min, max and approximations out and counts active lanes.",
                ),
                click.option(
                    "--lanes",
                    type=click.Choice(("full", "active")),
                    help="Count masked instructions with all lanes or with those switched on "
                    "(default: what the convention says).",
                ),
                click.option(
                    "-x",
                    "separator",
                    metavar="SEP",
                    help="Print values separated by SEP instead of text tables, with one header row.",
                ),
                click.option("--json", "as_json", is_flag=True, help="Print the whole record as JSON."),
                click.option("--markdown", is_flag=True, help="Print Markdown tables."),
                click.option(
                    "-o",
                    "--output",
                    metavar="FILE",
                    help="Write the result to FILE instead of printing it; a name that ends in .json saves the "
                    "record, from which `flopwatch show` makes every report again.",
                ),
                click.option(
                    "--strict",
                    is_flag=True,
                    help="Exit with code 3 if an instruction is unknown or the record is partial.",
                ),
            )
        ):
            decorated = option(decorated)
        return decorated

    return decorate


def check_output(
    output: str | None, as_json: bool = False, separator: str | None = None, markdown: bool = False
) -> None:
    """Find out before anything runs that a result could not be shown as asked for; raises UsageError."""
    if as_json + (separator is not None) + markdown > 1:
        raise UsageError("Of -x, --json and --markdown only one can be asked for.")
    if separator == "":
        raise UsageError("The separator after -x is empty.", todo="Give one, for example -x ';'.")
    if output is None:
        if sys.stdout is None:
            raise UsageError("The result cannot be printed: stdout is closed.", todo="Save it in a file with -o FILE.")
        return
    if not output:
        raise UsageError("The name of the file for the result is empty.")
    folder = Path(output).parent
    if not os.path.isdir(folder):
        raise UsageError(f"The folder {str(folder)!r} for the result does not exist.", todo=f"Run `mkdir -p {folder}`.")
    if os.path.isdir(output):
        raise UsageError(f"{output!r} is a folder; the result needs a file.")
    if not os.access(output if os.path.exists(output) else folder, os.W_OK):
        raise UsageError(f"The result may not be written to {output!r}: permission denied.")


def show(record: Record, shown: Shown) -> None:
    """Print a record, or write it to a file; with `strict`, raise IncompleteError afterwards if it is not complete."""
    as_json = shown.as_json or (shown.output or "").endswith(".json")
    deliver(lambda out, to_file: _write(out, record, shown, as_json if to_file else shown.as_json), shown.output)
    if shown.strict:
        check_strict(record)


def deliver(write: Callable[[TextIO, bool], None], output: str | None) -> None:
    """Let `write(out, to_file)` write a result to the file `output`, or to stdout if that is None.

    Raises CannotMeasureError for a file that cannot be written; the result is printed then, so that it is not lost.
    """
    if output is None:
        _print(write)
        return
    text = io.StringIO()
    write(text, True)
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text.getvalue())
    except OSError as error:
        _print(write)
        raise CannotMeasureError(
            f"The result could not be written to {output!r}: {error.strerror}.", todo="It was printed instead."
        ) from error


def _print(write: Callable[[TextIO, bool], None]) -> None:
    try:
        write(sys.stdout, False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left (`| head`): that is no error, and Python must not complain of it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_strict(record: Record) -> None:
    """Raise IncompleteError if the record, or the estimate in it, is partial or has unknown instructions or operators."""
    sides = [record, *([record.estimate] if record.estimate is not None else [])]
    if all(side.complete and not side.unknown for side in sides):
        return
    reasons = [*record.partial, *(views.coverage(side) for side in sides if side.unknown)]
    raise IncompleteError("The record is not complete, and --strict was asked for.", seen="; ".join(reasons) + ".")


def progress(text: str) -> None:
    """Say on stderr what is going on, if somebody is looking."""
    if sys.stderr is not None and sys.stderr.isatty():
        Console(stderr=True).print(f"flopwatch: {text}", style="dim", highlight=False, markup=False)


def _write(out: TextIO, record: Record, shown: Shown, as_json: bool) -> None:
    if as_json:
        out.write(encode(record, shown.by).decode())
    elif shown.separator is not None:
        sheet = views.by_axis(record, shown.by, full_names=True) if shown.by else views.summary(record)
        csv.render(sheet, out, shown.separator)
    else:
        report = reports.find("markdown" if shown.markdown else "table")
        for index, sheet in enumerate(_sheets(record, shown)):
            if index:
                out.write("\n")
            report.render(sheet, out)


def _sheets(record: Record, shown: Shown) -> list[Sheet]:
    sheets = list(views.overview(record))
    if shown.by is not None:
        sheets.insert(-1, views.by_axis(record, shown.by, shown.top))
    return sheets
