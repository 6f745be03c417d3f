"""What every part of a stream's handle needs: where it is in which graph, and how a step is added behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.data.schema import Schema
from headwater.errors import GraphError
from headwater.graph.changelog import Changelog
from headwater.graph.flow import Flow
from headwater.graph.nodes import Node
from headwater.graph.picture import picture

if TYPE_CHECKING:
    from headwater.streams.environment import Environment
    from headwater.streams.stream import Step


class Handle:
    """A place in a graph that rows come from."""

    def __init__(self, env: Environment, flow: Flow) -> None:
        self._env, self._flow = env, flow

    def __repr__(self) -> str:
        """Where the rows come from, how they are keyed, and what they look like."""
        graph, flow = self._env.graph, self._flow
        names = [f"{graph.uid(graph.node(edge.source))}{f'.{edge.tag}' if edge.tag else ''}" for edge in flow.edges]
        key = "" if flow.key.is_nothing else f" by {flow.key.describe()}"
        changes = "" if flow.changelog.is_append_only else f" ({flow.changelog.describe()})"
        return f"<{type(self).__name__} {' + '.join(names)}{key}: {flow.schema}{changes}>"

    def _repr_svg_(self) -> str:
        """In a notebook: the part of the job that its rows come from."""
        return picture(self._env.graph, [edge.source for edge in self._flow.edges])

    @property
    def schema(self) -> Schema:
        """What the rows look like."""
        return self._flow.schema

    @property
    def changelog(self) -> Changelog:
        """What the rows do to the table they describe: only add to it, or also change it and take from it."""
        return self._flow.changelog

    def _add(self, node: Node) -> Step:
        from headwater.streams.stream import Step  # which is itself a handle

        return Step(self._env, self._env.graph.add(node))

    def _check_meets(self, other: object, step: str) -> None:
        """Only streams of one job can meet."""
        if not isinstance(other, Handle):
            raise GraphError.bad_argument(step, "needs another stream", other, "pass a stream")
        if other._env is not self._env:
            raise GraphError.other_environment(step)
