"""`headwater savepoint`: take, list, check, show and restore savepoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import headwater as hw
from headwater import control
from headwater.cli.commands.run import (
    AllowDroppedState,
    Bounded,
    Config,
    Engine,
    JobFile,
    Master,
    Parallelism,
    Renamed,
    run,
)
from headwater.cli.exits import Exit
from headwater.cli.loading import load
from headwater.cli.output import Json, show_json, show_table, show_text
from headwater.cli.pairs import pairs_of
from headwater.errors import HeadwaterError
from headwater.savepoints.files import DESCRIPTION

app = typer.Typer(no_args_is_help=True, help="Take, list, check, show and restore savepoints.")
Folder = Annotated[Path, typer.Argument(help="the savepoint's folder")]


@app.command()
def take(
    job_dir: Annotated[Path, typer.Argument(help="the folder of a job that runs")],
    path: Annotated[Path, typer.Argument(help="a new folder that the job can write to")],
    timeout: Annotated[str | None, typer.Option(help="how long to wait, as '5 min'; by default as it takes")] = None,
    as_json: Json = False,
) -> None:
    """Let a running job take a savepoint; it goes on meanwhile."""
    taken = control.request_savepoint(job_dir, path, timeout=timeout)
    if as_json:
        show_json({"savepoint": taken})
    else:
        show_text(f"the state is saved in {taken}")


@app.command("list")
def list_savepoints(
    folder: Annotated[Path, typer.Argument(help="where to look")] = Path(),
    as_json: Json = False,
) -> None:
    """List the savepoints in a folder, or below it."""
    found = []
    for path, below, names in os.walk(folder.absolute()):
        below.sort()
        if DESCRIPTION not in names:
            continue
        below.clear()
        try:
            saved = hw.savepoint.read(path)
        except HeadwaterError:  # a file of that name, of something else
            continue
        size = sum(saved[state].size_bytes for state in saved)
        found.append({"savepoint": path, "job": saved.job, "epoch": saved.epoch, "states": len(saved), "bytes": size})
    if as_json:
        show_json(found)
    elif not found:
        show_text(f"no savepoint is in {folder.absolute()}")
    else:
        show_table(tuple(found[0]), [tuple(one.values()) for one in found], numbers=("epoch", "states", "bytes"))


@app.command()
def check(
    path: Folder,
    file: JobFile,
    renamed: Renamed = None,
    as_json: Json = False,
) -> None:
    """Tell what becomes of each state when a program goes on from a savepoint.

    The exit code is 0 when it can, 1 when it cannot, 3 when it can if it may give state up.
    """
    found = hw.savepoint.check(path, load(file), pairs_of("--renamed", renamed))
    if as_json:
        show_json({"fits": found.exit_code == Exit.DONE, "text": str(found)})
    else:
        show_text(str(found))
    raise typer.Exit(found.exit_code)


@app.command()
def show(path: Folder, as_json: Json = False) -> None:
    """Show what a savepoint holds."""
    saved = hw.savepoint.read(path)
    if not as_json:
        show_text(str(saved))
        return
    states = [
        {"step": step, "state": name, "rows": saved[step, name].rows, "bytes": saved[step, name].size_bytes}
        for step, name in saved
    ]
    show_json(
        {
            "savepoint": saved.path,
            "job": saved.job,
            "epoch": saved.epoch,
            "parallelism": saved.parallelism,
            "key_groups": saved.key_groups,
            "positions": saved.positions,
            "watermarks": saved.watermarks,
            "states": states,
        }
    )


@app.command()
def restore(
    path: Folder,
    file: JobFile,
    job_dir: Annotated[Path, typer.Option(help="the new job folder")],
    parallelism: Parallelism = None,
    master: Master = None,
    engine: Engine = None,
    config: Config = None,
    renamed: Renamed = None,
    allow_dropped_state: AllowDroppedState = False,
    bounded: Bounded = False,
    as_json: Json = False,
) -> None:
    """Run a job from a savepoint, in a new job folder: `headwater run --from`."""
    run(
        file,
        from_=path,
        job_dir=job_dir,
        parallelism=parallelism,
        master=master,
        engine=engine,
        config=config,
        renamed=renamed,
        allow_dropped_state=allow_dropped_state,
        bounded=bounded,
        as_json=as_json,
    )
