"""Dead letters must have a reader, and their reader a source that has some."""

from __future__ import annotations

from headwater.connectors.contract import DEAD_LETTERS
from headwater.errors import GraphError
from headwater.graph.graph import Graph
from headwater.graph.nodes import SourceNode


def check_dead_letters(graph: Graph) -> None:
    """Refuse a source whose bad records would vanish, and a reader that would wait for what never comes."""
    for node in graph:
        if not isinstance(node, SourceNode):
            continue
        is_read = DEAD_LETTERS.name in node.outputs
        if node.source.has_dead_letters and not is_read:
            raise GraphError.bad_argument(
                graph.uid(node),
                "puts records that it cannot read among its dead letters",
                "nobody who reads them",
                "read .side_output(hw.DEAD_LETTERS), or let the job fail at the first with bad_records='fail'",
            )
        if is_read and not node.source.has_dead_letters:
            raise GraphError.bad_argument(
                graph.uid(node),
                "has no dead letters",
                node.source.describe(),
                "give the source bad_records='dead_letters', if it has that option",
            )
