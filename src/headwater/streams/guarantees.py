"""Rows that a failure may lose or double: a warning when a job starts that goes on after one."""

from __future__ import annotations

import warnings

from headwater.connectors.contract import Guarantee
from headwater.graph.graph import Graph
from headwater.graph.guarantees import guarantees

_ONCE = {Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE}


class GuaranteeWarning(UserWarning):
    """A job goes on after a failure, and some of its rows may then be missing or doubled in a sink."""


def warn_of_guarantees(graph: Graph, *, outlives_process: bool, publishes_early: bool) -> None:
    """Warn, once for a job, of the paths on which rows do not take effect as often as the job says."""
    paths = guarantees(graph, outlives_process=outlives_process, publishes_early=publishes_early)
    wanted = _ONCE | {Guarantee.AT_LEAST_ONCE} if publishes_early else _ONCE
    weak = [path for path in paths if path.guarantee not in wanted]
    if weak:
        mode = "at-least-once" if publishes_early else "exactly-once"
        facts = "; ".join(f"{path.source} -> {path.sink} is {path.guarantee}" for path in weak)
        warnings.warn(
            f"job {graph.name!r} is not {mode} on all paths: {facts}; env.explain_guarantees() says why; "
            "use other connectors, or silence hw.GuaranteeWarning if this will do",
            GuaranteeWarning,
            stacklevel=4,
        )


def after_failure(*, outlives_process: bool, restarts: bool) -> str:
    """What a job goes on from after a failure, in words."""
    if outlives_process:
        return "after a failure it goes on from its last committed epoch, also in a new process"
    if restarts:
        return "after a failure it goes on from its last committed epoch; in a new process it starts from the beginning"
    return "after a failure it starts from the beginning: it has neither a restart strategy nor, on Spark, a job_dir"
