"""`flopwatch stat`: count what a command or a running process executes."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from flopwatch import api, counters
from flopwatch.cli.output import check_output, check_strict, show, show_options
from flopwatch.errors import UsageError

AXES = ("process", "thread", "library", "symbol", "instruction")


@click.command("stat", context_settings={"allow_interspersed_args": False})
@click.option(
    "--counter",
    type=click.Choice(("auto", *counters.NAMES)),
    default="auto",
    show_default=True,
    help="How operations are seen.",
)
@click.option(
    "-r",
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Run the command N times and show the spread.",
)
@click.option(
    "-p",
    "--pid",
    type=click.IntRange(min=1),
    help="Count a running process instead: until it ends, until Ctrl-C, or while COMMAND runs.",
)
@click.option("--no-time", is_flag=True, help="Skip the uninstrumented run that gives the time.")
@click.option(
    "--imports", is_flag=True, help="Count what a Python program executes while importing, too (may be slow)."
)
@show_options(AXES)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    counter: str,
    repeat: int,
    pid: int | None,
    no_time: bool,
    imports: bool,
    by: str | None,
    top: int,
    convention: str | None,
    lanes: str | None,
    separator: str | None,
    as_json: bool,
    markdown: bool,
    output: str | None,
    strict: bool,
    command: tuple[str, ...],
) -> int:
    """Count the floating-point operations that COMMAND executes, in all its threads and child processes.

    The program's own output, exit code and signals pass through; the result follows on stdout, or goes to a file with
    -o. Ctrl-C goes to the program, and what was counted until then is shown; a second one ends the program.

    The command RUNS TWICE: once counted, then once more without instrumentation for its wall time and FLOP/s, its
    output thrown away and its input empty (a file as input is read again; after input from a pipe there is no time).
    Use --no-time for a program that must not run twice.

    \b
    Examples:
      flopwatch stat -- ./program argument
      flopwatch stat --by symbol -o result.json -- python script.py
      flopwatch stat -p 1234 -- sleep 10
    """
    check_output(output, as_json, separator, markdown)
    if pid is not None:
        if repeat > 1:
            raise UsageError("A running process cannot be repeated.", todo="Leave -r out.")
        record = api.measure_process(pid, during=command, counter=counter, convention=convention or "pmu", lanes=lanes)
    else:
        record = api.measure_command(
            command,
            counter=counter,
            repeat=repeat,
            timed=not no_time,
            imports=imports,
            convention=convention or "pmu",
            lanes=lanes,
            progress=_progress,
        )
    show(record, by=by, top=top, separator=separator, as_json=as_json, markdown=markdown, output=output)
    if strict:
        check_strict(record)
    return record.exit_code


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        Console(stderr=True).print(f"flopwatch: {text}", style="dim", highlight=False)
