"""What an environment knows of SQL: its catalog, its settings, and how queries become steps of its graph."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from headwater.durations import duration_ms
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.sql.bind.queries import QueryBinder
from headwater.sql.build import columns, groups, joins, overs, ranks  # noqa: F401  each says what it builds
from headwater.sql.build.builder import Builder
from headwater.sql.catalog import Catalog
from headwater.sql.relations import Relation
from headwater.sql.rules import ruled
from headwater.sql.text.reading import read_query

STATE_TTL = "table.exec.state.ttl"
"""The setting that says for how long without rows what a query keeps is kept; nothing is for ever."""


class Session:
    """The tables, views and settings of one environment."""

    def __init__(self, graph: Graph) -> None:
        self.catalog = Catalog()
        self.settings: dict[str, str] = {}
        self.written: set[str] = set()
        """The tables that something is inserted into already."""
        self._builder = Builder(graph)

    def query(self, text: str, tables: Mapping[str, Relation] | None = None) -> Relation:
        """What a query gives; some tables may have names in it that the catalog does not know."""
        return QueryBinder(self.catalog, text, tables or {}).query(read_query(text).tree)

    def build(self, relation: Relation, prefix: str) -> Flow:
        """Steps of the graph, which stay."""
        return self._told().build(ruled(relation), prefix)

    def built_in(self, graph: Graph, relation: Relation, prefix: str = "query") -> Flow:
        """Steps of a copy of the graph, to try something in."""
        return self._told().over(graph).build(ruled(relation), prefix)

    def _told(self) -> Builder:
        """What builds, as the settings say now."""
        ttl_ms = duration_ms(self.settings.get(STATE_TTL, "0 s"), what=STATE_TTL)
        self._builder.ttl = dt.timedelta(milliseconds=ttl_ms) if ttl_ms else None
        return self._builder
