"""The facts of a step besides its tables. Savepoints say in words what facts did not always say."""

from __future__ import annotations

from typing import Any

from headwater.durations import duration_ms
from headwater.graph.nodes.core import TTLS
from headwater.graph.nodes.deduplication import KNOWN_UNTIL, SINCE_FIRST, DeduplicateNode
from headwater.operators.rank.deduplicate import KNOWN_FOR
from headwater.savepoints.files import SavedStep


def facts_of(step: SavedStep) -> list[dict[str, Any]]:
    """The facts of a step, by subtask."""
    if step.kept.get("operation") != DeduplicateNode.operation:
        return step.metas
    words = step.kept.get(TTLS, {}).get(KNOWN_UNTIL)
    known_for_ms = None if words is None else duration_ms(words.removesuffix(SINCE_FIRST))
    return [{KNOWN_FOR: known_for_ms, **meta} for meta in step.metas]
