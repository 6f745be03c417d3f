"""The ways to run a job: what a program must have for each of them."""

from __future__ import annotations

from pathlib import Path

from headwater.errors import GraphError, JobError
from headwater.graph.graph import Graph
from headwater.plan.plan import JobPlan


def check_gives_results(graph: Graph) -> None:
    """A bounded run ends with all results, so a step that never has one is a mistake."""
    for node in graph:
        if node.is_silent:
            raise GraphError.bad_argument(
                graph.uid(node),
                "must give a result before a bounded run ends",
                "a trigger that never fires",
                "choose another trigger",
            )


def check_available_now(plan: JobPlan, *, bounded: bool | None, on_spark: bool, job_dir: Path | None) -> None:
    """Refuse a run that is to be gone on with when there is nothing to go on from, or nothing can come."""
    if bounded is not None:
        raise GraphError.bad_argument(
            "run",
            "takes bounded or available_now",
            f"bounded={bounded}, available_now=True",
            "leave one out: with bounded=True the input ends for good, with available_now=True the next run goes on",
        )
    if not on_spark:
        raise JobError.not_supported(
            "available_now=True goes on where the last run stopped, and a job on the local engine keeps nothing: each "
            "run would read everything again",
            "run it with engine='spark' and a job_dir, or with bounded=True",
        )
    if job_dir is None:
        raise JobError.not_supported(
            "available_now=True goes on where the last run stopped, and without a job_dir nothing is kept: each run "
            "would read everything again",
            "give the environment a job_dir, or run with bounded=True",
        )
    if all(node.source.bounded for node in plan.sources()):
        named = ", ".join(f"{plan.graph.uid(node)} ({node.source.describe()})" for node in plan.sources())
        raise JobError.not_supported(
            f"available_now=True is for input that more can be added to, and all input of job {plan.graph.name!r} has an "
            f"end: {named}",
            "run it with bounded=True; to read files as they come, use read_files(watch=True)",
        )
