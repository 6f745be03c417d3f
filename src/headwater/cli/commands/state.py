"""`headwater state`: what the steps of a job keep, by key or by a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

import headwater as hw
from headwater import control
from headwater.cli.loading import load
from headwater.cli.output import Json, show_json, show_table, show_text
from headwater.data.table_query import query
from headwater.errors import JobError
from headwater.job.state_view import StateView
from headwater.savepoints.files import DESCRIPTION
from headwater.streams.overrides import Overrides

app = typer.Typer(no_args_is_help=True, help="Look at what the steps of a job keep.")
Job = Annotated[Path, typer.Argument(help="the folder of a job, or of a savepoint")]


@app.command("list")
def list_states(job: Job, as_json: Json = False) -> None:
    """List the states of a job, with their entries."""
    if (job / DESCRIPTION).exists():
        saved = hw.savepoint.read(job)
        found = [(step, name, saved[step, name].rows) for step, name in saved]
    else:
        steps = control.job(job).steps
        found = [(uid, name, entries) for uid, step in steps.items() for name, entries in step.state.items()]
    if as_json:
        show_json([{"step": step, "state": name, "entries": entries} for step, name, entries in found])
    else:
        show_table(("step", "state", "entries"), found, numbers=("entries",))


@app.command()
def show(
    job: Job,
    uid: Annotated[str, typer.Argument(metavar="STEP", help="the step")],
    name: Annotated[str, typer.Argument(metavar="STATE", help="the state")],
    key: Annotated[
        str | None, typer.Option(help="of one key: text or JSON; an array for keys of several columns")
    ] = None,
    epoch: Annotated[int | None, typer.Option(help="as it was at an epoch that is retained")] = None,
    file: Annotated[Path | None, typer.Option(help="the job's program, to look at a job that does not run")] = None,
    sql: Annotated[str | None, typer.Option(help="a query over the table `state`, in DuckDB's SQL")] = None,
    limit: Annotated[int, typer.Option(min=1, help="show at most so many entries")] = 100,
    as_json: Json = False,
) -> None:
    """Show a state of a step: all entries, those of a key, or what a query makes of them."""
    view = _view(job, uid, name, epoch, file)
    if key is not None:
        _show_key(view, key, as_json=as_json)
        return
    found = view.table() if sql is None else query(view.table(), sql)
    rows = found.slice(0, limit).to_pylist()
    if as_json:
        show_json({"step": uid, "state": name, "epoch": view.epoch, "entries": len(found), "rows": rows})
        return
    show_table(found.column_names, [list(row.values()) for row in rows], numbers=_numbers(found.schema))
    if len(found) > limit:
        show_text(f"… {len(found) - limit:,} more of {len(found):,}; see them with --limit, or ask with --sql or --key")


def _view(job: Path, uid: str, name: str, epoch: int | None, file: Path | None) -> StateView:
    if not (job / DESCRIPTION).exists():
        seen = control.job(job)
        if seen.is_running:
            return control.request_state(job, uid, name, epoch=epoch)
        if file is None:
            raise JobError.needs_program(seen.name, str(job))
        return load(file, Overrides(job_dir=job, engine="spark")).state(uid, name, epoch=epoch)
    saved = hw.savepoint.read(job)
    if epoch is not None and epoch != saved.epoch:
        raise typer.BadParameter(f"the savepoint is of epoch {saved.epoch}, and --epoch says {epoch}")
    return StateView(uid, name, saved.epoch, saved[uid, name].to_arrow())


def _show_key(view: StateView, text: str, *, as_json: bool) -> None:
    try:
        key = json.loads(text)
    except ValueError:
        key = text
    if pa.types.is_string(view.table().schema.field("key").type):
        key = text  # 17 may be a name
    found = view.get(tuple(key) if isinstance(key, list) else key)
    if as_json:
        show_json({"step": view.step, "state": view.name, "epoch": view.epoch, "key": key, "value": found})
    else:
        show_text("nothing is kept for this key" if found is None else _text(found))


def _text(found: Any) -> str:
    if isinstance(found, dict):
        return "\n".join(f"{name}: {value}" for name, value in found.items())
    return "\n".join(map(str, found)) if isinstance(found, list) else str(found)


def _numbers(schema: pa.Schema) -> list[str]:
    return [one.name for one in schema if pa.types.is_integer(one.type) or pa.types.is_floating(one.type)]
