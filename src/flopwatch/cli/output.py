"""Options that choose how a result is shown, and the showing; shared by the commands that print records."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from flopwatch import reports, views
from flopwatch.errors import CannotMeasureError, IncompleteError, UsageError
from flopwatch.flops.convention import CONVENTIONS
from flopwatch.record import Record, encode
from flopwatch.reports import csv
from flopwatch.sheet import Sheet

F = TypeVar("F", bound=Callable[..., Any])

TOP = 30
AXES = ("process", "thread", "library", "symbol", "instruction", "layer", "op", "function")


def show_options(axes: tuple[str, ...]) -> Callable[[F], F]:
    """Decorate a command with the options that choose what of a record is shown, and how."""

    def decorate(function: F) -> F:
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
            function = option(function)
        return function

    return decorate


def check_output(output: str | None, as_json: bool, separator: str | None, markdown: bool) -> None:
    """Find out before anything runs that a result could not be shown as asked for; raises UsageError."""
    if as_json + (separator is not None) + markdown > 1:
        raise UsageError("Of -x, --json and --markdown only one can be asked for.")
    if separator == "":
        raise UsageError("The separator after -x is empty.", todo="Give one, for example -x ';'.")
    if output is None:
        return
    folder = Path(output).parent
    if not folder.is_dir():
        raise UsageError(f"The folder {str(folder)!r} for the result does not exist.", todo=f"Run `mkdir -p {folder}`.")
    if Path(output).is_dir():
        raise UsageError(f"{output!r} is a folder; the result needs a file.")
    if not os.access(output if os.path.exists(output) else folder, os.W_OK):
        raise UsageError(f"The result may not be written to {output!r}: permission denied.")


def show(
    record: Record,
    *,
    by: str | None,
    top: int,
    separator: str | None,
    as_json: bool,
    markdown: bool,
    output: str | None,
) -> None:
    """Print a record, or write it to a file; a result that cannot be written to its file is printed instead."""
    if output is None:
        _print(record, by, top, separator, as_json, markdown)
        return
    text = io.StringIO()
    _write(text, record, by, top, separator, as_json or output.endswith(".json"), markdown)
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text.getvalue())
    except OSError as error:
        _print(record, by, top, separator, as_json, markdown)
        raise CannotMeasureError(
            f"The result could not be written to {output!r}: {error.strerror}.", todo="It was printed instead."
        ) from error


def check_strict(record: Record) -> None:
    """Raise IncompleteError if the record is partial or has unknown instructions."""
    if record.complete and not record.unknown:
        return
    reasons = [*record.partial, *([views.coverage(record)] if record.unknown else [])]
    raise IncompleteError("The record is not complete, and --strict was asked for.", seen="; ".join(reasons) + ".")


def _print(record: Record, by: str | None, top: int, separator: str | None, as_json: bool, markdown: bool) -> None:
    try:
        _write(sys.stdout, record, by, top, separator, as_json, markdown)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left (`| head`): that is no error, and Python must not complain of it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(
    out: TextIO, record: Record, by: str | None, top: int, separator: str | None, as_json: bool, markdown: bool
) -> None:
    if as_json:
        out.write(encode(record, by).decode())
    elif separator is not None:
        csv.render(views.by_axis(record, by, full_names=True) if by else views.summary(record), out, separator)
    else:
        report = reports.find("markdown" if markdown else "table")
        for index, sheet in enumerate(_sheets(record, by, top)):
            if index:
                out.write("\n")
            report.render(sheet, out)


def _sheets(record: Record, by: str | None, top: int) -> list[Sheet]:
    sheets = list(views.overview(record))
    if by is not None:
        sheets.insert(-1, views.by_axis(record, by, top))
    return sheets
