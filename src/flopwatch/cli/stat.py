"""`flopwatch stat`: count what a command or a running process executes."""

from __future__ import annotations

import click

from flopwatch import api, counters
from flopwatch.cli.output import Shown, progress, show, show_options
from flopwatch.counters.hardware.naming import parse
from flopwatch.errors import UsageError

AXES = ("process", "thread", "library", "symbol", "instruction")


@click.command("stat", short_help="Count what a command executes.", context_settings={"allow_interspersed_args": False})
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
@click.option(
    "--dtype",
    "dtypes",
    type=click.Choice(("fp64", "fp32", "bf16", "fp16", "x87")),
    multiple=True,
    help="A datatype that has to be told apart from others; may be given several times. A counter that cannot is not taken.",
)
@click.option(
    "-e",
    "--events",
    multiple=True,
    metavar="EVENTS",
    help="Count these events instead, on hardware: raw codes (r02c7,r08c7) or events of the kernel (page-faults), each with "
    "FLOP per count if wanted: r02c7=1,r08c7=4.",
)
@show_options(AXES)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    counter: str,
    repeat: int,
    pid: int | None,
    no_time: bool,
    imports: bool,
    dtypes: tuple[str, ...],
    events: tuple[str, ...],
    shown: Shown,
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
      flopwatch stat -e r02c7=1,r08c7=4,r20c7=8 -- ./program
    """
    convention = shown.convention or "pmu"
    given = parse(",".join(events)) if events else ()
    if given and counter == "instrumented":
        raise UsageError("The instrumented counter has no events.", todo="Leave out -e or --counter.")
    if given:
        counter = "hardware"
    if pid is not None:
        if repeat > 1:
            raise UsageError("A running process cannot be repeated.", todo="Leave -r out.")
        record = api.measure_process(
            pid,
            during=command,
            counter=counter,
            convention=convention,
            lanes=shown.lanes,
            by=shown.by,
            dtypes=dtypes,
            events=given,
        )
    else:
        record = api.measure_command(
            command,
            counter=counter,
            repeat=repeat,
            timed=not no_time,
            imports=imports,
            convention=convention,
            lanes=shown.lanes,
            by=shown.by,
            dtypes=dtypes,
            events=given,
            progress=progress,
        )
    show(record, shown)
    return record.exit_code
