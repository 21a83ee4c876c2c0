"""`flopwatch show`: make any report again from a saved record."""

from __future__ import annotations

import click

from flopwatch import api
from flopwatch.cli.output import AXES, check_output, check_strict, show, show_options


@click.command("show")
@show_options(AXES)
@click.argument("record")
def command(
    by: str | None,
    top: int,
    convention: str | None,
    lanes: str | None,
    separator: str | None,
    as_json: bool,
    markdown: bool,
    output: str | None,
    strict: bool,
    record: str,
) -> int:
    """Show the saved RECORD again, by another axis, under another convention or in another format; nothing is run.

    \b
    Example:
      flopwatch show result.json --by library --convention arithmetic
    """
    check_output(output, as_json, separator, markdown)
    loaded = api.load(record).under(convention=convention, lanes=lanes)
    show(loaded, by=by, top=top, separator=separator, as_json=as_json, markdown=markdown, output=output)
    if strict:
        check_strict(loaded)
    return 0
