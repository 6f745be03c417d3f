"""`headwater new`: a project to begin with."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.output import show_text
from headwater.errors import JobError

_TEMPLATES = files("headwater.cli") / "templates"
_FILES = {"job.py": "job.py.txt", "test_job.py": "test_job.py.txt", "README.md": "README.md.txt"}
_NAME = "PROJECT_NAME"


def new(
    folder: Annotated[Path, typer.Argument(help="a new folder, whose name becomes that of the job")],
) -> None:
    """Make a project: a job, a test that needs no Spark, and a README that says how to run both."""
    name = re.sub(r"[^\w.-]", "-", folder.absolute().name)
    if folder.exists() and any(folder.iterdir()):
        raise JobError.not_supported(f"a project is made in a new folder, and {folder} holds something", "name another")
    folder.mkdir(parents=True, exist_ok=True)
    for target, template in _FILES.items():
        (folder / target).write_text((_TEMPLATES / template).read_text().replace(_NAME, name))
    show_text(
        f"{folder} has a job and its test; next:\n"
        f"  cd {folder}\n"
        f"  python -m pytest\n"
        f"  headwater log create events orders 'user string, amount double, ts timestamp'\n"
        f"  headwater run job.py --job-dir state"
    )
