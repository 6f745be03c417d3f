"""State that nothing ever takes away: a warning when a job starts that never ends."""

from __future__ import annotations

import warnings

from headwater.graph.graph import Graph


class StateGrowthWarning(UserWarning):
    """A step of a job without end keeps every row or key it gets, so its state grows for as long as the job runs."""


def warn_of_growth(graph: Graph) -> None:
    """Warn of every step that forgets nothing; for jobs whose input does not end."""
    for node in graph:
        if node.grows:
            warnings.warn(
                f"step {graph.uid(node)!r} keeps {node.grows}, which does not end; its state grows for ever; "
                "give it ttl=..., or silence hw.StateGrowthWarning if there are few",
                StateGrowthWarning,
                stacklevel=4,
            )
