"""`headwater explain`: a job's plan, its state and its guarantees, without running it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.commands.run import JobFile, Parallelism
from headwater.cli.loading import load
from headwater.cli.output import Json, show_json, show_text
from headwater.streams.overrides import Overrides


def explain(
    file: JobFile,
    plan: Annotated[bool, typer.Option("--plan", help="the levels and steps it runs in; the default")] = False,
    state: Annotated[bool, typer.Option("--state", help="what is kept, per what and until when")] = False,
    sample: Annotated[
        str | None,
        typer.Option(help="with --state, how much it is and how it grows in so many rows, or in a time, as '10 s'"),
    ] = None,
    rows_per_second: Annotated[
        float | None, typer.Option(help="how fast the rows of the sample come, where they have no event time", min=0)
    ] = None,
    guarantees: Annotated[bool, typer.Option("--guarantees", help="how often rows take effect in each sink")] = False,
    parallelism: Parallelism = None,
    as_json: Json = False,
) -> None:
    """Explain a job without running it: how it is planned, what it keeps, what it guarantees."""
    env = load(file, Overrides(parallelism=parallelism))
    told: dict[str, Any] = {}
    is_state = state or sample is not None
    if plan or not (is_state or guarantees):
        told["plan"] = env.explain()
    if is_state:
        rows = int(sample) if sample is not None and sample.isdecimal() else sample
        told["state"] = env.explain_state(sample=rows, rows_per_second=rows_per_second)
    if guarantees:
        told["guarantees"] = env.explain_guarantees()
    if as_json:
        show_json({"job": env.name, **told, **({"state": told["state"].to_dict()} if is_state else {})})
    else:
        show_text("\n\n".join(map(str, told.values())))
