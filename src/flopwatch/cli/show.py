"""`flopwatch show`: make any report again from a saved record."""

from __future__ import annotations

import click

from flopwatch import api
from flopwatch.attribution import AXES
from flopwatch.cli.output import Shown, show, show_options


@click.command("show", short_help="Show a saved record again.")
@show_options(AXES)
@click.argument("record")
def command(shown: Shown, record: str) -> int:
    """Show the saved RECORD again, by another axis, under another convention or in another format; nothing is run.

    \b
    Example:
      flopwatch show result.json --by library --convention arithmetic
    """
    show(api.load(record).under(convention=shown.convention, lanes=shown.lanes), shown)
    return 0
