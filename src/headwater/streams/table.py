"""The handle on a table of SQL: rows that change, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.connectors.contract import Changes, Sink, Staged
from headwater.connectors.memory import MemorySink
from headwater.errors import HeadwaterError
from headwater.graph.flow import Flow
from headwater.graph.nodes import SinkNode
from headwater.job.growth.explanation import explained_state
from headwater.plan.explain import explain, explain_changes
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation
from headwater.sql.statements.shown import name_text
from headwater.streams.settings import check_explained
from headwater.streams.stream import Step
from headwater.streams.table_windows import window_call
from headwater.windows.assigners import WindowAssigner
from headwater.words import Explained, RegularJoinHow

if TYPE_CHECKING:
    from headwater.streams.environment import Environment

Seen = Callable[[list[Any]], object]
"""Is told the rows of an epoch."""


class _AllChanges(MemorySink):
    """Is told every row that goes, as it knows none by key."""

    changes = Changes.APPLIED


class _Followed(_AllChanges):
    """Hands the rows of each epoch over, and keeps none."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen: Seen | None = seen

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_seen": None}  # tasks only stage files

    def publish(self, epoch: int, files: list[Staged]) -> None:
        super().publish(epoch, files)
        if self.rows and self._seen is not None:
            rows, self.rows = self.rows, []
            self._seen(rows)


class Table:
    """What a query gives: a table that changes as rows come. It becomes steps of the job when something reads it.

    Some methods give other tables, as the clauses of a query do. In their text `this` is the table itself.
    """

    def __init__(self, env: Environment, relation: Relation) -> None:
        self._env, self._relation = env, relation

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self._relation.fields)
        return f"<Table: {columns}{' (changes)' if self._relation.updates else ''}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._relation.names

    # -- other tables -----------------------------------------------------------------------------------------------

    def select(self, *expressions: str) -> Table:
        """Columns that are computed of this table's, as behind SELECT.

        >>> env = Environment("doc", engine="local")
        >>> sales = env.from_rows([("a", 1), ("b", 2)], "shop string, n long").to_table()
        >>> sales.where("n > 1").select("shop", "n * 10 AS tens").collect()
        [Row(shop='b', tens=20)]
        """
        return self._queried("SELECT", _listed("select", expressions), "FROM this")

    def where(self, condition: str) -> Table:
        """The rows for which a condition is true."""
        return self._queried("SELECT * FROM this WHERE", _listed("where", (condition,)))

    def distinct(self) -> Table:
        """Each row once."""
        return self._queried("SELECT DISTINCT * FROM this")

    def group_by(self, *keys: str) -> GroupedTable:
        """Groups, for `agg`; without keys all rows are one.

        >>> env = Environment("doc", engine="local")
        >>> sales = env.from_rows([("a", 1), ("a", 2)], "shop string, n long").to_table()
        >>> sales.group_by("shop").agg(total="SUM(n)").collect()
        [Row(shop='a', total=3, row_kind='+I')]
        """
        return GroupedTable(self, keys)

    def join(self, other: Table, on: str, *, how: RegularJoinHow = "inner") -> Table:
        """Pairs of rows of this table and another for which a condition holds; the other one is `other`.

        >>> env = Environment("doc", engine="local")
        >>> orders = env.from_rows([(1, "EUR")], "id long, currency string", name="orders").to_table()
        >>> rates = env.from_rows([("EUR", 2)], "code string, rate long", name="rates").to_table()
        >>> orders.join(rates, "this.currency = other.code").select("id", "rate").collect()
        [Row(id=1, rate=2)]
        """
        self._check_meets(other, "join")
        if how not in ("inner", "left", "right", "full"):
            raise SqlError.bad_argument("join", "is inner, left, right or full", how, "choose one of them")
        joined = ("SELECT * FROM this", how.upper(), "JOIN other ON", _listed("join", (on,)))
        return self._queried(*joined, other=other._relation)

    def window(self, windows: WindowAssigner, on: str, *, by: tuple[str, ...] | list[str] = ()) -> Table:
        """Each row with `window_start`, `window_end` and `window_time` of its windows over a time column.

        >>> env = Environment("doc", engine="local")
        >>> times = hw.Watermarks.monotonous("ms")
        >>> rows = env.from_rows([("a", 1), ("a", 2), ("a", 12)], "k string, ms long", times)
        >>> clicks = rows.with_column("ts", "to_timestamp_ltz(ms, 3)").to_table(time="ts")
        >>> per_window = clicks.window(hw.tumbling("10 ms"), on="ts").group_by("k", "window_start", "window_end")
        >>> per_window.agg(n="COUNT(*)").select("k", "n").collect()
        [Row(k='a', n=2), Row(k='a', n=1)]

        `by` are the columns that have sessions of their own.
        """
        return self._queried("SELECT * FROM TABLE(", window_call(windows, on, by), ")")

    def union_all(self, other: Table) -> Table:
        """The rows of this table and of another with the same columns."""
        self._check_meets(other, "union_all")
        return self._queried("SELECT * FROM this UNION ALL SELECT * FROM other", other=other._relation)

    def _check_meets(self, other: object, step: str) -> None:
        if not isinstance(other, Table) or other._env is not self._env:
            raise SqlError.bad_argument(step, "needs a table of the same environment", other, "pass one")

    def _queried(self, *lines: str, **others: Relation) -> Table:
        """What a query over this table gives; parts stand in lines of their own, so that none comments another out."""
        return Table(self._env, self._env._sql.query("\n".join(lines), {"this": self._relation, **others}))

    # -- ends -------------------------------------------------------------------------------------------------------

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

    def follow(self, seen: Seen) -> None:
        """Run the query and hand its rows over, those of each epoch when it is committed, until the input ends or Ctrl-C.

        Of a table that changes they are changes, with `row_kind`. A query that fails may be run again from its beginning.

        >>> env = Environment("doc", engine="local")
        >>> sales = env.from_rows([("a", 1), ("a", 2)], "shop string, n long").to_table()
        >>> sales.where("n > 1").follow(print)
        [Row(shop='a', n=2)]
        """
        graph = self._env.graph.copy()
        node = SinkNode.of(self._env._sql.built_in(graph, self._relation), sink=_Followed(seen), name="follow")
        try:
            self._env._into(node, lambda job: job.wait(), bounded=None, graph=graph)
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
            way out: a ttl: SET 'table.exec.state.ttl' in SQL, state_ttl= of the environment
        grows for ever: query.aggregate
        """
        graph = self._env.graph.copy()
        flow = self._env._sql.built_in(graph, self._relation)
        end = graph.add(SinkNode.of(flow, sink=MemorySink(), name="collect"))
        plan = self._env._plan(graph.upstream_of(end.origin))
        told = {"plan": explain, "state": explained_state, "changelog": explain_changes}[check_explained(of)]
        return str(told(plan))

    def to_stream(self) -> Step:
        """The rows as a stream, of a table whose rows are only added."""
        if self._relation.updates:
            raise SqlError.needs_append_only(None, "to_stream", self._relation.updater.label)
        return Step(self._env, self._flow())

    def to_changelog(self) -> Step:
        """The changes as a stream, which carries what each row does."""
        return Step(self._env, self._flow())

    def sink(self, sink: Sink, *, name: str = "sink") -> Step:
        """Hand the rows to a sink; one that only adds rows refuses a table that changes."""
        given: object = sink
        refuses = isinstance(given, Sink) and given.changes is Changes.REFUSED
        if refuses and self._relation.updates:
            raise SqlError.sink_takes_no_changes(None, name, sink.describe(), self._relation.updater.label)
        flow = self._env._sql.build(self._relation, name)
        return Step(self._env, self._env.graph.add(SinkNode.of(flow, sink=sink, name=name)))

    def _flow(self) -> Flow:
        return self._env._sql.build(self._relation, "query")


class GroupedTable:
    """Groups of a table's rows."""

    def __init__(self, table: Table, keys: tuple[str, ...]) -> None:
        self._table = table
        self._keys = [_listed("group_by", (key,)) for key in keys]

    def agg(self, **aggregates: str) -> Table:
        """A row for each group: its keys, and aggregates by name, as `agg(total="SUM(n)")`."""
        if not aggregates:
            raise SqlError.bad_argument("agg", "needs aggregates by name", aggregates, 'write agg(n="COUNT(*)")')
        called = [f"{_listed('agg', (text,))}\nAS {name_text(name)}" for name, text in aggregates.items()]
        groups = ["GROUP BY", ",\n".join(self._keys)] if self._keys else []
        return self._table._queried("SELECT", ",\n".join([*self._keys, *called]), "FROM this", *groups)


def _listed(step: str, expressions: tuple[str, ...]) -> str:
    everything: tuple[object, ...] = expressions
    for given in everything:
        if not isinstance(given, str) or not given.strip():
            raise SqlError.bad_argument(step, "takes expressions of SQL", given, 'write them as text, such as "n * 2"')
    if not expressions:
        raise SqlError.bad_argument(step, "needs at least one expression", expressions, 'write select("*")')
    return ",\n".join(expressions)
