"""`headwater push`: rows over HTTP into an event log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.pairs import pairs_of
from headwater.errors import JobError
from headwater.eventlog import EventLog


def push(
    log: Annotated[Path, typer.Argument(help="the folder of the event log")],
    create: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=SCHEMA", help="a topic that is made unless it is there; may be repeated"),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="of topics that are made")] = 1,
    host: Annotated[str, typer.Option(help="beyond this machine only behind something that encrypts")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 is any that is free")] = 8080,
) -> None:
    """Serve an event log over HTTP, so that curl can feed a job, until Ctrl-C."""
    from headwater.push.foreground import serve_in_foreground

    topics = list(pairs_of("--create", create).items())
    try:
        serve_in_foreground(EventLog(log), topics, partitions=partitions, host=host, port=port)
    except OSError as error:
        raise JobError.not_supported(
            f"the push server cannot serve {log}: {error}", "mend that, or name another folder"
        ) from error
