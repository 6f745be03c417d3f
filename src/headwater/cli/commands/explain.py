"""`headwater explain`: a job's plan, its state and its guarantees, without running it."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.commands.run import JobFile, Parallelism
from headwater.cli.loading import load
from headwater.cli.output import Json, show_json, show_text
from headwater.streams.overrides import Overrides


def explain(
    file: JobFile,
    plan: Annotated[bool, typer.Option("--plan", help="the levels and steps it runs in; the default")] = False,
    state: Annotated[bool, typer.Option("--state", help="what is kept, per what and until when")] = False,
    guarantees: Annotated[bool, typer.Option("--guarantees", help="how often rows take effect in each sink")] = False,
    parallelism: Parallelism = None,
    as_json: Json = False,
) -> None:
    """Explain a job without running it: how it is planned, what it keeps, what it guarantees."""
    env = load(file, Overrides(parallelism=parallelism))
    wanted = {
        "plan": env.explain if plan or not (state or guarantees) else None,
        "state": (lambda: env.explain("state")) if state else None,
        "guarantees": env.explain_guarantees if guarantees else None,
    }
    texts = {name: text() for name, text in wanted.items() if text is not None}
    if as_json:
        show_json({"job": env.name, **texts})
    else:
        show_text("\n\n".join(texts.values()))
