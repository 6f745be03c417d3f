"""Runs statements: each changes the catalog or the settings, shows something, or puts a query into the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from headwater.graph.graph import Graph
from headwater.graph.nodes import SinkNode
from headwater.sql.bind.queries import QueryBinder
from headwater.sql.build.builder import uid_part
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation
from headwater.sql.session import Session
from headwater.sql.statements.inserts import inserted
from headwater.sql.statements.settings import reset, set_option
from headwater.sql.statements.shown import describe, show
from headwater.sql.statements.tables import create_table
from headwater.sql.text.reading import read_statements
from headwater.sql.text.statements import (
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    Reset,
    SetOption,
    Show,
    Statement,
    StatementSet,
)

Explains = Callable[[Relation | None, str], str]
"""Says how what gives rows would run: its plan, its state or its changelog; or without it, what the job does."""
_DETAILS: Final = {"": "plan", "STATE": "state", "CHANGELOG_MODE": "changelog"}


class Plan(NamedTuple):
    """What EXPLAIN says."""

    plan: str


def execute(session: Session, graph: Graph, text: str, explains: Explains) -> list[Any]:
    """Run one statement: the rows that it shows. What it inserts becomes steps of the job."""
    statements = read_statements(text)
    if len(statements) != 1:
        place = statements[1].place if len(statements) > 1 else None
        raise SqlError.unreadable(place, "expected one statement; env.run_sql takes scripts")
    rows, inserts = _run(session, statements[0], explains)
    _insert(session, graph, inserts)
    return rows


def run_script(
    session: Session, graph: Graph, text: str, explains: Explains, shown: Callable[[Sequence[Any]], None]
) -> bool:
    """Run the statements of a script, and show what they show; all its inserts become steps of the job, if it has some."""
    inserts: list[Insert] = []
    for statement in read_statements(text):
        rows, more = _run(session, statement, explains)
        inserts += more
        if rows:
            shown(rows)
    _insert(session, graph, inserts)
    return bool(inserts)


def _run(session: Session, statement: Statement, explains: Explains) -> tuple[list[Any], Sequence[Insert]]:
    """What a statement shows, and what it inserts."""
    catalog = session.catalog
    if isinstance(statement, CreateTable):
        create_table(catalog, statement)
    elif isinstance(statement, CreateView):
        _create_view(session, statement)
    elif isinstance(statement, Drop):
        if not (statement.is_if_exists and catalog.get(statement.name) is None):
            catalog.drop(statement.name, statement.kind, statement.place)
    elif isinstance(statement, Show):
        return show(catalog, statement), ()
    elif isinstance(statement, Describe):
        return list(describe(catalog, statement)), ()
    elif isinstance(statement, SetOption):
        return list(set_option(session.settings, statement)), ()
    elif isinstance(statement, Reset):
        reset(session.settings, statement)
    elif isinstance(statement, Insert):
        return [], (statement,)
    elif isinstance(statement, StatementSet):
        return [], statement.inserts
    elif isinstance(statement, Explain):
        return _explained(session, statement, explains), ()
    elif isinstance(statement, Query):
        raise SqlError.misplaced(
            statement.place, "a query", "a script", "write INSERT INTO a table, or call env.sql for its rows"
        )
    return [], ()


def _explained(session: Session, statement: Explain, explains: Explains) -> list[Any]:
    """How queries would run; of an INSERT what goes into its table."""
    if statement.detail == "ANALYZE" and not statement.statements:
        return [Plan(explains(None, "analyze"))]
    if statement.detail not in _DETAILS:
        raise SqlError.not_supported(
            statement.place, f"EXPLAIN {statement.detail} of a query", "it shows the job that runs: write it alone"
        )
    catalog, text = session.catalog, statement.place.text
    inserts = [one for one in statement.statements if isinstance(one, Insert)]
    relations = [relation for _, relation in inserted(catalog, inserts)]
    relations += [QueryBinder(catalog, text).query(one.tree) for one in statement.statements if isinstance(one, Query)]
    return [Plan(explains(relation, _DETAILS[statement.detail])) for relation in relations]


def _create_view(session: Session, statement: CreateView) -> None:
    catalog = session.catalog
    if statement.is_if_not_exists and catalog.get(statement.name) is not None:
        return
    binder = QueryBinder(catalog, statement.place.text)
    relation = binder.named(binder.query(statement.query), list(statement.columns), statement.query)
    catalog.add(statement.name, relation, statement.place, statement.text)


def _insert(session: Session, graph: Graph, inserts: Sequence[Insert]) -> None:
    """Put queries into the job, each in front of the sink of its table; steps are named after the table."""
    for insert in inserts:
        if insert.name in session.written:
            raise SqlError.written_already(insert.place, insert.name)
    for table, relation in inserted(session.catalog, inserts):
        flow = session.build(relation, table.name)
        assert table.sink is not None
        sink = graph.add(SinkNode.of(flow, sink=table.sink, name=table.name))
        graph.set_uid(sink.origin, uid_part(f"{table.name}.sink"))
        session.written.add(table.name)
