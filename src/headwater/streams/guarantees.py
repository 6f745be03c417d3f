"""Rows that a failure may lose or double: a warning when a job starts that goes on after one."""

from __future__ import annotations

import warnings

from headwater.connectors.contract import Guarantee
from headwater.graph.graph import Graph
from headwater.graph.guarantees import guarantees

_ONCE = {Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE}


class GuaranteeWarning(UserWarning):
    """A job goes on after a failure, and some of its rows may then be missing or doubled in a sink."""


def warn_of_guarantees(graph: Graph, *, outlives_process: bool) -> None:
    """Warn, once for a job, of the paths on which rows do not take effect once."""
    weak = [path for path in guarantees(graph, outlives_process=outlives_process) if path.guarantee not in _ONCE]
    if weak:
        facts = "; ".join(f"{path.source} -> {path.sink} is {path.guarantee}" for path in weak)
        warnings.warn(
            f"job {graph.name!r} is not exactly-once on all paths: {facts}; env.explain_guarantees() says why; "
            "use other connectors, or silence hw.GuaranteeWarning if this will do",
            GuaranteeWarning,
            stacklevel=4,
        )
