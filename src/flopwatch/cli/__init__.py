"""The command line: one thin file per command; nothing else prints or exits."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from flopwatch import __version__
from flopwatch.errors import CannotMeasureError, FlopwatchError

NAMES = ("stat", "model", "train", "show", "doctor")
INTERRUPTED = 130


class Commands(click.Group):
    """Loads a command's file only when it is asked for, so that `stat` never waits for a framework."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in NAMES:
            return None
        command = import_module(f"flopwatch.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="flopwatch")
def group() -> None:
    """Count the floating-point operations that programs and models really execute.

    \b
    Exit codes: 0 done; 1 the model's own code raised; 2 wrong use; 3 --strict and something is
    unknown or partial; 4 cannot be measured here; 130 interrupted. `stat` passes the measured
    program's own code through.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: errors that the user can act on are sentences on stderr, never tracebacks."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        result = group.main(arguments, prog_name="flopwatch", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except FlopwatchError as error:
        click.echo(f"flopwatch: {error}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("flopwatch: interrupted; nothing was saved.", err=True)
        return INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            raise  # a mistake of ours: files that the user named are dealt with where they are used
        click.echo(f"flopwatch: The result could not be written: {error.strerror}.", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python does not try again at exit
        return CannotMeasureError.exit_code
