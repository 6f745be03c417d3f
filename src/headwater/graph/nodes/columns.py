"""Steps without state that work on whole batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.expressions import Stage, compile_select, compile_where, computed
from headwater.data.expressions.running import NOW
from headwater.data.functions.terms import Term
from headwater.data.functions.types import quoted as quoted_name
from headwater.data.schema import Schema, SchemaLike, quoted
from headwater.data.types import is_time_type
from headwater.errors import GraphError, SchemaError
from headwater.graph.changelog import APPEND_OR_RETRACT, Modes
from headwater.graph.checks import check_callable
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node


@dataclass(frozen=True, kw_only=True)
class SelectNode(Node):
    """Computes columns by SQL expressions, whole batches at a time."""

    operation: ClassVar[str] = "select"

    expressions: tuple[str, ...]
    query: str

    @classmethod
    def of(cls, flow: Flow, *, expressions: Sequence[str], name: str = "select") -> Self:
        query, schema = compile_select(tuple(expressions), flow.schema, name)
        kept = {name for name in flow.schema.names if not {"*", name, quoted(name)}.isdisjoint(expressions)}
        keeps_key = kept.issuperset(flow.changelog.key)
        return cls(
            name=name,
            inputs=flow.edges,
            schema=schema,
            changelog=flow.changelog if keeps_key else flow.changelog.retracting(),
            expressions=tuple(expressions),
            query=query,
        )

    @classmethod
    def of_columns(cls, flow: Flow, computed: Mapping[Any, Any], *, name: str = "with_column") -> Self:
        """All columns, and those that are computed: in the place of one of the same name, else behind the others."""
        for column, expression in computed.items():
            if not isinstance(column, str) or not isinstance(expression, str):
                raise GraphError.bad_argument(
                    name, "takes a name and a SQL expression", (column, expression), "write with_column('n', 'a + b')"
                )
        given = {column: f"{expression} as {quoted(column)}" for column, expression in computed.items()}
        places = {column: quoted(column) for column in flow.schema.names}
        return cls.of(flow, expressions=list({**places, **given}.values()), name=name)

    @classmethod
    def of_dropped(cls, flow: Flow, names: Sequence[str], *, name: str = "drop") -> Self:
        """All columns but some."""
        for column in names:
            _check_column(flow, column, name)
        left = [quoted(column) for column in flow.schema.names if column not in names]
        if not left or not names:
            raise GraphError.bad_argument(name, "takes away some columns and leaves some", names, "name those to drop")
        return cls.of(flow, expressions=left, name=name)

    @classmethod
    def of_renamed(cls, flow: Flow, names: Any, *, name: str = "rename") -> Self:
        """All columns, some under other names."""
        if not isinstance(names, Mapping) or not all(isinstance(new, str) for new in names.values()):
            raise GraphError.bad_argument(
                name, "takes a dict of old names and new ones", names, "write rename({'old': 'new'})"
            )
        for column in names:
            _check_column(flow, column, name)
        shown = [
            f"{quoted(column)} as {quoted(names[column])}" if column in names else quoted(column)
            for column in flow.schema.names
        ]
        return cls.of(flow, expressions=shown, name=name)

    def takes(self, side: int) -> Modes:
        """Upserts only where the columns of their key stay as they are."""
        return APPEND_OR_RETRACT | {self.changelog.mode}


@dataclass(frozen=True, kw_only=True)
class ComputeNode(Node):
    """Computes columns of terms that are bound already, of the rows for which a condition is true: SQL's SELECT and WHERE."""

    operation: ClassVar[str] = "compute"

    stages: tuple[Stage, ...]
    """What is computed, one after the other."""
    query: str | None
    """Of DuckDB, for the columns that are not picked; None if all are."""
    picked: Mapping[str, str]
    """The columns that are taken as they are, if each row gives one: what they are called, and what they were."""
    timestamp: str | None
    """The column that says the event time of rows from here on."""
    words: str
    reads_clock: bool
    """Whether something of it depends on processing time."""

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        columns: Mapping[str, Term],
        condition: Term | None = None,
        timestamp: str | None = None,
        words: str = "",
        name: str = "compute",
    ) -> Self:
        """`words` say what is computed, to people."""
        sources = {quoted_name(column): column for column in flow.schema.names}
        chosen = {column: sources[term.sql] for column, term in columns.items() if term.sql in sources}
        stages = (Stage(tuple(columns.items()), condition),)
        gives_one = _gives_one(stages)
        query, schema = computed(stages)
        changelog = flow.changelog
        renamed = {old: new for new, old in reversed(chosen.items())}
        if gives_one and all(column in renamed for column in changelog.key):
            changelog = dataclasses.replace(changelog, key=tuple(renamed[column] for column in changelog.key))
        else:
            changelog = changelog.retracting()
        picked = chosen if gives_one else {}
        return cls(
            name=name,
            inputs=flow.edges,
            schema=schema,
            changelog=changelog,
            stages=stages,
            query=_query(stages, picked),
            picked=picked,
            timestamp=timestamp,
            words=words,
            reads_clock=quoted_name(NOW) in query,
        )

    def behind(self, before: ComputeNode) -> Self:
        """This step and the one before it as one."""
        stages = (*before.stages, *self.stages)
        picked = {}
        if _gives_one(stages):
            picked = {new: before.picked[old] for new, old in self.picked.items() if old in before.picked}
        return dataclasses.replace(
            self,
            inputs=before.inputs,
            stages=stages,
            query=_query(stages, picked),
            picked=picked,
            words="; ".join(words for words in (before.words, self.words) if words),
            reads_clock=before.reads_clock or self.reads_clock,
        )

    def takes(self, side: int) -> Modes:
        """Upserts only where the columns of their key stay, and each row gives one."""
        return APPEND_OR_RETRACT | {self.changelog.mode}

    @property
    def gives_times(self) -> bool:
        return self.timestamp is not None


def _gives_one(stages: tuple[Stage, ...]) -> bool:
    """Whether each row gives one row, in its place."""
    return all(
        stage.condition is None and not any("unnest(" in term.sql for _, term in stage.columns) for stage in stages
    )


def _query(stages: tuple[Stage, ...], picked: Mapping[str, str]) -> str | None:
    """The query for what is not picked."""
    last = stages[-1]
    rest = tuple(column for column in last.columns if column[0] not in picked)
    return computed((*stages[:-1], Stage(rest, last.condition)))[0] if rest else None


@dataclass(frozen=True, kw_only=True)
class WhereNode(Node):
    """Keeps the rows for which a SQL expression is true, whole batches at a time."""

    operation: ClassVar[str] = "where"
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    expression: str
    query: str

    @classmethod
    def of(cls, flow: Flow, *, expression: str, name: str = "where") -> Self:
        query = compile_where(expression, flow.schema, name)
        return cls(
            name=name,
            inputs=flow.edges,
            schema=flow.schema,
            changelog=flow.changelog.retracting(),
            expression=expression,
            query=query,
        )


@dataclass(frozen=True, kw_only=True)
class MapBatchesNode(Node):
    """Arrow table in, Arrow table out, by a Python function."""

    operation: ClassVar[str] = "map_batches"

    function: Callable[[pa.Table], pa.Table]
    timestamp: str | None

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        function: Callable[[pa.Table], pa.Table],
        schema: SchemaLike | None = None,
        timestamp: str | None = None,
        name: str = "map_batches",
    ) -> Self:
        """Without a schema the rows keep theirs. `timestamp` is the time column of what the function gives."""
        result = flow.schema if schema is None else Schema.of(schema)
        if timestamp is not None and not is_time_type(result.field(timestamp).type):
            raise GraphError.bad_argument(
                name, "needs a timestamp or bigint column for event time", timestamp, f"choose from {result}"
            )
        check_callable(function, name)
        return cls(name=name, inputs=flow.edges, schema=result, function=function, timestamp=timestamp)

    @property
    def gives_times(self) -> bool:
        return self.timestamp is not None


def _check_column(flow: Flow, column: str, step: str) -> None:
    if column not in flow.schema.names:
        raise SchemaError.no_field(column, flow.schema.names, step)
