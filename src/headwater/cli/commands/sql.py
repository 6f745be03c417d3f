"""`headwater sql`: streaming SQL in a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import headwater as hw
from headwater.cli.exits import Exit
from headwater.cli.output import Json
from headwater.cli.sql.client import Client
from headwater.cli.sql.prompt import statements_of
from headwater.cli.sql.splitting import split
from headwater.errors import HeadwaterError
from headwater.words import EngineName


def sql(
    statement: Annotated[
        list[str] | None,
        typer.Option("--execute", "-e", help="a statement to run, instead of a prompt; may be repeated"),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="a script to run, instead of a prompt")] = None,
    log: Annotated[Path | None, typer.Option(help="an event log, whose topics are tables")] = None,
    engine: Annotated[EngineName, typer.Option(help="where queries run: in this process, or on Spark")] = "local",
    job_dir: Annotated[Path | None, typer.Option(help="the job folder of INSERT INTO, on Spark")] = None,
    limit: Annotated[int, typer.Option(min=1, help="show at most so many rows of a result that is complete")] = 1000,
    as_json: Json = False,
) -> None:
    """Ask streaming SQL in a terminal: queries show their rows as they change, until Ctrl-C or the end of the input.

    Statements end with a semicolon. `-e` and `-f` run theirs and end at the first that fails.
    """

    def environment() -> hw.Environment:
        return hw.Environment("sql", engine=engine, job_dir=job_dir)

    client = Client(environment, log, limit=limit, as_json=as_json)
    script = "\n".join(f"{one};" for one in statement or ()) + ("" if file is None else f"{file.read_text()};")
    if script or not sys.stdin.isatty():
        for one in split(script or f"{sys.stdin.read()};")[0]:
            client.run(one)
        return
    for one in statements_of(client.names):
        try:
            client.run(one)
        except HeadwaterError as error:
            sys.stderr.write(f"{error}\n")
        except KeyboardInterrupt:
            sys.stderr.write("\n")
    raise typer.Exit(Exit.DONE)
