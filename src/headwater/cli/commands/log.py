"""`headwater log`: the topics of an event log, and their rows."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from headwater.cli.output import Json, show_json, show_json_line, show_table, show_text
from headwater.data.schema import Schema
from headwater.eventlog import EventLog
from headwater.eventlog.topic import Topic
from headwater.push.rows import LINES, batches
from headwater.serving.refused import Refused

app = typer.Typer(no_args_is_help=True, help="Create, fill and read the topics of an event log.")
Log = Annotated[Path, typer.Argument(help="the folder of the event log")]
Name = Annotated[str, typer.Argument(metavar="TOPIC", help="the topic")]
_CHUNK_BYTES = 4 << 20
_POLL_S = 0.2


@app.command()
def create(
    log: Log,
    topic: Name,
    schema: Annotated[str, typer.Argument(help="as 'user string, ts timestamp, amount double'")],
    partitions: Annotated[int, typer.Option(min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Create a topic."""
    made = EventLog(log).create_topic(topic, schema, partitions)
    if as_json:
        show_json(_record(made))
    else:
        show_text(f"topic {topic} is in {log}; partitions: {partitions}")


@app.command()
def append(
    log: Log,
    topic: Name,
    file: Annotated[Path, typer.Argument(help="JSON lines; - is standard input")] = Path("-"),
    partition: Annotated[int, typer.Option(min=0, help="where they go, unless --by says it")] = 0,
    by: Annotated[str | None, typer.Option(help="the column that decides the partition")] = None,
    as_json: Json = False,
) -> None:
    """Append rows: an object of JSON in each line.

    Lines are appended some thousands at a time; when one does not fit, the message says how many are in.
    """
    to = EventLog(log).topic(topic)
    count = 0
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as lines:
        while text := lines.readlines(_CHUNK_BYTES):
            for batch in _batches(b"".join(text), to.schema, count):
                if by is None:
                    to.append(batch, partition)
                else:
                    to.append_keyed(batch, by)
                count += len(batch)
    to.flush()
    if as_json:
        show_json({"topic": topic, "rows": count, "ends": to.end_offsets()})
    else:
        show_text(f"appended to topic {topic}: {count:,} {'row' if count == 1 else 'rows'}")


@app.command()
def tail(
    log: Log,
    topic: Name,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="how many of the newest of each partition")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="and what comes, until Ctrl-C")] = False,
) -> None:
    """Print the newest rows of a topic, as JSON lines."""
    source = EventLog(log).topic(topic)
    starts, ends = source.start_offsets(), source.end_offsets()
    read = {partition: max(starts[partition], end - lines) for partition, end in ends.items()}
    while True:
        for partition, end in source.end_offsets().items():
            for batch in source.read(partition, read[partition], end):
                for row in batch.to_pylist():
                    show_json_line(row)
            read[partition] = end
        if not follow:
            return
        time.sleep(_POLL_S)


@app.command("list")
def list_topics(log: Log, as_json: Json = False) -> None:
    """List the topics of an event log."""
    there = EventLog(log)
    found = [_record(there.topic(name)) for name in there.topics()]
    if as_json:
        show_json(found)
    elif not found:
        show_text(f"no topic is in {log.absolute()}")
    else:
        columns = ("topic", "partitions", "rows", "schema")
        show_table(columns, [[one[name] for name in columns] for one in found], numbers=("partitions", "rows"))


@app.command()
def delete(
    log: Log,
    topic: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Delete a topic with all its rows. A job that still reads it fails."""
    found = EventLog(log).topic(topic)
    rows = _record(found)["rows"]
    if not yes:
        typer.confirm(f"Topic {topic} and its {rows:,} rows will be gone. Go on?", abort=True, err=True)
    EventLog(log).delete_topic(topic)
    show_text(f"topic {topic} is gone")


def _batches(text: bytes, schema: pa.Schema, before: int) -> list[pa.RecordBatch]:
    """All rows of a piece, so that none of it is appended when one does not fit."""
    try:
        return list(batches(text, LINES[0], schema))
    except Refused as refused:
        raise typer.BadParameter(f"{refused}; {before:,} rows before that piece are in the topic") from None


def _record(topic: Topic) -> dict[str, Any]:
    starts, ends = topic.start_offsets(), topic.end_offsets()
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "rows": sum(ends[partition] - starts[partition] for partition in ends),
        "schema": Schema.of(topic.schema).ddl(),
        "starts": starts,
        "ends": ends,
    }
