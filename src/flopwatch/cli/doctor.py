"""`flopwatch doctor`: what this machine can count, and what would make it count more."""

from __future__ import annotations

from typing import TextIO

import click

from flopwatch import api
from flopwatch.cli.output import deliver
from flopwatch.diagnosis import encode
from flopwatch.diagnosis.view import sheet
from flopwatch.reports import table


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print findings and facts as JSON.")
def command(as_json: bool) -> int:
    """Try every counter now, and say what this machine can count, what it lacks, and which command would enable it.

    Each line is "ok", "cannot" (with the reason) or "to do" (with the command). Exit code 0 if at least one counter works,
    4 if none does.

    \b
    Example:
      flopwatch doctor --json
    """
    found = api.doctor()

    def write(out: TextIO, to_file: bool) -> None:
        if as_json:
            out.write(encode(found).decode())
        else:
            table.render(sheet(found), out)

    deliver(write, None)
    return found.exit_code
