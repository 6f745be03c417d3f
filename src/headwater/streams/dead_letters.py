"""What is put aside must have a reader, and whoever reads dead letters a source that has some."""

from __future__ import annotations

from headwater.connectors.contract import DEAD_LETTERS
from headwater.errors import GraphError
from headwater.graph.graph import Graph
from headwater.graph.nodes import RowFunctionNode, SourceNode


def check_dead_letters(graph: Graph) -> None:
    """Refuse a source whose bad records would vanish, and a reader that would wait for what never comes."""
    _check_failed_rows(graph)
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


def _check_failed_rows(graph: Graph) -> None:
    """Refuse a step whose failed rows would vanish."""
    read = {(edge.source, edge.tag) for node in graph for edge in node.inputs}
    for node in graph:
        if isinstance(node, RowFunctionNode) and node.failed_to is not None:
            tag = node.failed_to.name
            if (node.id, tag) not in read:
                raise GraphError.bad_argument(
                    graph.uid(node),
                    f"sends rows that fail to {tag!r}",
                    "nobody who reads them",
                    "read .side_output(tag), or let the job fail with them by leaving out failed_to=",
                )
