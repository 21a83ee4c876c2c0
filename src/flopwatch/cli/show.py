"""`flopwatch show`: make any report again from a saved record."""

from __future__ import annotations

import click

from flopwatch import api, formats
from flopwatch.attribution import AXES
from flopwatch.cli.output import Shown, show, show_options
from flopwatch.errors import UsageError


@click.command("show", short_help="Show a saved record again.")
@click.option(
    "--from",
    "source",
    type=click.Choice(formats.NAMES),
    help="RECORD is no record but what another program wrote: perf for `perf stat -x,` or `perf stat -j`.",
)
@click.option(
    "--cpu",
    metavar="NAME",
    help="With --from: the microarchitecture of the processor that it was counted on.",
)
@show_options(AXES)
@click.argument("record")
def command(source: str | None, cpu: str | None, shown: Shown, record: str) -> int:
    """Show the saved RECORD again, by another axis, under another convention or in another format; nothing is run.

    With --from, the counts of a file that another program wrote are weighed by the tables of the processor --cpu.

    \b
    Examples:
      flopwatch show result.json --by library --convention arithmetic
      flopwatch show --from perf counts.csv --cpu NAME
    """
    if source is None:
        if cpu is not None:
            raise UsageError("--cpu says what counts from another program are worth.", todo="Add --from perf.")
        found = api.load(record)
    elif cpu is None:
        raise UsageError(
            f"A file of {source} does not say which processor it comes from.",
            todo="Name its microarchitecture with --cpu.",
        )
    else:
        found = api.read_counts(record, format=source, cpu=cpu)
    show(found.under(convention=shown.convention, lanes=shown.lanes), shown)
    return 0
