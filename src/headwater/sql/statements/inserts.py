"""INSERT INTO: queries into the sinks of tables, as their columns ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from headwater.connectors.contract import Changes
from headwater.data.functions.terms import Term
from headwater.data.functions.types import NULL, Type, quoted, text_of
from headwater.sql.bind.queries import QueryBinder
from headwater.sql.bind.scalars import converted_to
from headwater.sql.catalog import Catalog, Table
from headwater.sql.errors import SqlError
from headwater.sql.relations import Field, Project, Relation, Scalar, Union, passed
from headwater.sql.text.places import Place
from headwater.sql.text.statements import Insert

_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")


def inserted(catalog: Catalog, inserts: Sequence[Insert]) -> list[tuple[Table, Relation]]:
    """For each table that is written to, all that goes there."""
    parts: dict[str, list[Relation]] = {}
    tables: dict[str, Table] = {}
    for insert in inserts:
        table = target(catalog, insert)
        tables[table.name] = table
        parts.setdefault(table.name, []).append(fitted(catalog, insert, table))
    return [
        (tables[name], relations[0] if len(relations) == 1 else Union(tuple(relations)))
        for name, relations in parts.items()
    ]


def target(catalog: Catalog, insert: Insert) -> Table:
    """The table that an INSERT writes to."""
    text = insert.place.text
    place = Place.of(text, insert.table) or insert.place
    found = catalog.get(insert.name)
    if found is None:
        raise SqlError.no_table(place, insert.name, catalog.tables())
    if not isinstance(found, Table):
        raise SqlError.not_supported(place, f"writing to view {insert.name!r}", "name a table")
    if found.sink is None:
        raise SqlError.not_supported(place, f"writing to table {insert.name!r}", "its connector only reads")
    return found


def fitted(catalog: Catalog, insert: Insert, table: Table) -> Relation:
    """What a query gives, with the names and types of the table's columns."""
    text = insert.place.text
    place = Place.of(text, insert.table) or insert.place
    relation = QueryBinder(catalog, text).query(insert.query)
    assert table.sink is not None
    if relation.updates and table.sink.changes is Changes.REFUSED:
        raise SqlError.sink_takes_no_changes(place, table.name, table.sink.describe(), relation.updater.label)
    columns = written_columns(table, place)
    given = _given(insert, columns, table, relation, place)
    items = []
    for field in columns:
        if field.name in given:
            items.append((field.name, _converted(relation, given[field.name], field, place)))
        else:
            items.append((field.name, _null(field, place)))
    return _without_nulls(Project(relation, tuple(items)), columns, table.name)


def written_columns(table: Table, place: Place | None) -> list[Field]:
    """The columns of a table that rows are written with."""
    declared = {} if table.declared is None else {column.name: column for column in table.declared.columns}
    columns = []
    for field in table.fields:
        column = declared.get(field.name)
        if table.order and field.name not in table.order:
            continue
        if column is not None and column.metadata is not None:
            if not column.is_virtual:
                raise SqlError.not_supported(
                    place, f"writing the METADATA column {field.name!r}", "declare it METADATA VIRTUAL: it is only read"
                )
            continue
        columns.append(field)
    return columns


def _given(insert: Insert, columns: list[Field], table: Table, relation: Relation, place: Place) -> dict[str, Field]:
    """Which column of the query each column of the table gets."""
    names = [field.name for field in columns]
    if not insert.columns:
        wanted = names
    else:
        wanted = list(insert.columns)
        for name in wanted:
            if name not in names:
                raise SqlError.no_column(place, name, names)
            if wanted.count(name) > 1:
                raise SqlError.already_there(place, "column", name)
    if len(wanted) != len(relation.fields):
        raise SqlError.wrong_count(place, f"the query for table {table.name!r}", len(relation.fields), len(wanted))
    return dict(zip(wanted, relation.fields, strict=True))


def _converted(relation: Relation, given: Field, wanted: Field, place: Place) -> Scalar:
    scalar = passed(relation, given.name)
    if not _is_implicit(given.type, wanted.type):
        raise SqlError.wrong_type(
            place, f"column {given.name!r} of the query, for column {wanted.name!r},", str(given.type), str(wanted.type)
        )
    if (
        given.type.kind == wanted.type.kind
        and given.type.is_timestamp
        and given.type.precision <= wanted.type.precision
    ):
        return Scalar(scalar.tree, Term(wanted.type, scalar.term.sql))
    return converted_to(scalar, wanted.type, place, f"column {given.name!r} of the query")


def _is_implicit(given: Type, wanted: Type) -> bool:
    """Whether values are cast without being asked for it, as Flink does it."""
    if given == wanted or given.is_null:
        return True
    if given.is_timestamp and wanted.is_timestamp:
        return True
    if wanted.is_decimal or wanted.kind == "double":
        return given.is_number
    if wanted.kind == "float":
        return given.is_exact
    if given.is_integer and wanted.is_integer:
        return _INTEGERS.index(given.kind) <= _INTEGERS.index(wanted.kind)
    if given.kind == wanted.kind and given.parts and len(given.parts) == len(wanted.parts):
        return all(_is_implicit(one, other) for one, other in zip(given.parts, wanted.parts, strict=True))
    return wanted.kind == "date" and given.kind == "timestamp"


def _null(field: Field, place: Place) -> Scalar:
    if not field.is_nullable:
        raise SqlError.needs_value(place, field.name)
    return converted_to(Scalar(exp.Null(), Term(NULL, "NULL")), field.type, place, f"column {field.name!r}")


def _without_nulls(relation: Project, columns: list[Field], table: str) -> Relation:
    """The same, and a NULL in a column that takes none fails the job."""
    checked = {field.name for field in columns if not field.is_nullable and relation.by_name[field.name].is_nullable}
    if not checked:
        return relation
    items = []
    for field in relation.fields:
        scalar = passed(relation, field.name)
        if field.name in checked:
            name = quoted(field.name)
            said = text_of(f"column {field.name!r} of table {table!r} is NOT NULL, and a row has NULL there")
            checked_term = Term(field.type, f"(CASE WHEN {name} IS NULL THEN error({said}) ELSE {name} END)")
            scalar = Scalar(exp.Anonymous(this="NOT NULL", expressions=[scalar.tree]), checked_term)
        items.append((field.name, scalar))
    return Project(relation, tuple(items))
