"""The commands put together, and how they end."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headwater.cli.commands import checkpoints, explain, jobs, log, new, push, run, savepoints, sql, state, ui
from headwater.cli.commands.demo import demo
from headwater.cli.commands.doctor import doctor
from headwater.cli.exits import Exit
from headwater.cli.output import show_text
from headwater.errors import HeadwaterError

_EXIT_CODES = (
    "Exit codes: 0 done; 1 the job failed or what was asked for cannot be done; 2 the command was not understood; 3 of "
    "`savepoint check`, state would be given up; 130 after Ctrl-C, 143 after SIGTERM."
)

app = typer.Typer(
    name="headwater",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    help="Stateful stream processing with Flink's programming model, on Spark.",
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(new.new)
app.command()(run.run)
app.command("list")(jobs.list_jobs)
app.command()(jobs.status)
app.command()(jobs.logs)
app.command()(jobs.stop)
app.command()(ui.ui)
app.add_typer(savepoints.app, name="savepoint")
app.add_typer(checkpoints.app, name="checkpoints")
app.add_typer(state.app, name="state")
app.command()(explain.explain)
app.command()(sql.sql)
app.add_typer(log.app, name="log")
app.command()(push.push)
app.command()(doctor)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(demo)


@app.callback(invoke_without_command=True)
def headwater(
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    """What is asked of no command."""
    if version:
        import importlib.metadata

        show_text(importlib.metadata.version("headwater"))
        raise typer.Exit(Exit.DONE)


def main() -> None:
    """Run a command; errors of ours are shown as what they say, without a traceback."""
    try:
        app()
    except HeadwaterError as error:
        sys.stderr.write(f"headwater: {error}\n")
        sys.exit(Exit.FAILED)
    except BrokenPipeError:  # who read what we print has read enough
        sys.stderr.close()
        sys.exit(Exit.FAILED)
