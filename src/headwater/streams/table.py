"""The handle on a table of SQL: rows that change, wherever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.connectors.contract import Changes
from headwater.connectors.memory import MemorySink
from headwater.errors import HeadwaterError
from headwater.graph.flow import Flow
from headwater.graph.nodes import SinkNode
from headwater.plan.explain import explain, explain_changes
from headwater.plan.explain_state import explain_state
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation
from headwater.streams.settings import check_explained
from headwater.streams.stream import Step
from headwater.words import Explained

if TYPE_CHECKING:
    from headwater.streams.environment import Environment


class _AllChanges(MemorySink):
    """Is told every row that goes, as it knows none by key."""

    changes = Changes.APPLIED


class Table:
    """What a query gives: a table that changes as rows come. It becomes steps of the job when something reads it."""

    def __init__(self, env: Environment, relation: Relation) -> None:
        self._env, self._relation = env, relation

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self._relation.fields)
        return f"<Table: {columns}{' (changes)' if self._relation.updates else ''}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._relation.names

    def collect(self) -> list[Any]:
        """Run the query over what input there is, to the end: its rows.

        Of a table that changes they are changes, with `row_kind`: a row that is replaced is told (-U) before the new one.
        """
        graph = self._env.graph.copy()
        flow = self._env._sql.built_in(graph, self._relation)
        try:
            return self._env._collect(flow, graph, sink=_AllChanges())
        except HeadwaterError as error:  # it tells all in its text
            raise error.with_traceback(None) from error.__cause__

    def explain(self, of: Explained = "plan") -> str:
        """How the query runs: its steps; the state that they keep, until when; or what their changes are.

        >>> env = Environment("doc", engine="local")
        >>> env.create_view("clicks", env.from_rows([("s1",)], "session string"))
        >>> print(env.sql("SELECT session, COUNT(*) AS n FROM clicks GROUP BY session").explain("state"))
        job doc
        query.aggregate: running, in memory
          keeps one count, about 32 bytes each
            per   session
            until never
            way out: group by a window, whose state goes with it
        grows for ever: query.aggregate
        """
        graph = self._env.graph.copy()
        flow = self._env._sql.built_in(graph, self._relation)
        end = graph.add(SinkNode.of(flow, sink=MemorySink(), name="collect"))
        plan = self._env._plan(graph.upstream_of(end.origin))
        return {"plan": explain, "state": explain_state, "changelog": explain_changes}[check_explained(of)](plan)

    def to_stream(self) -> Step:
        """The rows as a stream, of a table whose rows are only added."""
        if self._relation.updates:
            raise SqlError.needs_append_only(None, "to_stream", self._relation.updater.label)
        return Step(self._env, self._flow())

    def to_changelog(self) -> Step:
        """The changes as a stream, which carries what each row does."""
        return Step(self._env, self._flow())

    def _flow(self) -> Flow:
        return self._env._sql.build(self._relation, "query")
