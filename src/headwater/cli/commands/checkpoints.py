"""`headwater checkpoints`: list and show the checkpoints of a job, and take a job back to one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import headwater as hw
from headwater.cli.output import Json, show_json, show_text
from headwater.job.checkpoints.listing import Checkpoint

app = typer.Typer(no_args_is_help=True, help="List and show checkpoints, and take a job back to one.")
JobDir = Annotated[Path, typer.Argument(help="the job folder")]
Epoch = Annotated[int, typer.Argument(help="the epoch of the checkpoint")]


@app.command("list")
def list_checkpoints(job_dir: JobDir, as_json: Json = False) -> None:
    """List the checkpoints that are retained, and those that are damaged."""
    found = hw.checkpoints(job_dir)
    if as_json:
        show_json({"checkpoints": [_record(one) for one in found], "damaged": found.damaged})
    else:
        show_text(found.describe())


@app.command()
def show(job_dir: JobDir, epoch: Epoch, as_json: Json = False) -> None:
    """Show all that is known of a checkpoint, after a check of its checksums."""
    found = hw.checkpoints(job_dir)
    found.check(epoch)
    if as_json:
        show_json(_record(found[epoch]))
    else:
        show_text(found[epoch].describe())


@app.command()
def rewind(
    job_dir: JobDir,
    epoch: Epoch,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    as_json: Json = False,
) -> None:
    """Take a job that does not run back: its next start goes on after this checkpoint, and later ones are gone.

    Sinks that have the rows of later epochs are not given them again.
    """
    found = hw.checkpoints(job_dir)
    later = [one.epoch for one in found if one.epoch > found[epoch].epoch]
    if not yes:
        typer.confirm(f"{len(later)} checkpoints after epoch {epoch} will be gone. Go on?", abort=True, err=True)
    now = found.rewind(epoch)
    if as_json:
        show_json(_record(now))
    else:
        show_text(f"the next start of the job in {job_dir} goes on after epoch {now.epoch}")


def _record(one: Checkpoint) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name != "steps"} | {
        "steps": {uid: dict(step) for uid, step in one.steps.items()}
    }
