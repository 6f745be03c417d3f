"""CREATE TABLE: from what was written to a table of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from headwater.data.expressions.written_types import written_type
from headwater.data.functions.refusals import Refused
from headwater.data.functions.types import STRING
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema
from headwater.errors import SchemaError
from headwater.sql.bind.scalars import bound_tree
from headwater.sql.bind.scan import scanned
from headwater.sql.catalog import Catalog, ComputedColumn, Table
from headwater.sql.connectors import Made, Wanted, connected
from headwater.sql.connectors.options import Options
from headwater.sql.errors import SqlError
from headwater.sql.relations import Field, Values
from headwater.sql.text.places import Place
from headwater.sql.text.statements import ColumnText, CreateTable, WatermarkText
from headwater.watermarks import Watermarks

_LIKE_PARTS: Final = frozenset({"OPTIONS", "WATERMARKS", "CONSTRAINTS", "GENERATED", "METADATA", "ALL", "PARTITIONS"})


def create_table(catalog: Catalog, statement: CreateTable) -> None:
    """Add the table to the catalog."""
    if statement.is_if_not_exists and catalog.get(statement.name) is not None:
        return
    declared = _with_likeness(catalog, statement)
    catalog.add(statement.name, table_of(declared), statement.place)


def table_of(declared: CreateTable) -> Table:
    """The table that a statement declares."""
    _check_names(declared)
    stored = tuple(_field(column, declared) for column in declared.columns if column.type is not None)
    names = [column.name for column in declared.columns]
    for name in declared.primary_key:
        if name not in [field.name for field in stored]:
            raise SqlError.no_column(declared.place, name, [field.name for field in stored])
    options = Options(declared.name, declared.options, declared.option_places, declared.place)
    watermarks = None if declared.watermark is None else _watermarks(declared.watermark, declared, options)
    made = connected(
        Wanted(
            declared.name,
            stored,
            _schema(stored, declared.place),
            options,
            {column.name: column.metadata for column in declared.columns if column.metadata is not None},
            declared.primary_key,
            declared.partitioned_by,
        )
    )
    fields = _as_read(stored, made)
    computed = tuple(
        ComputedColumn(column.name, column.computed, declared.place.text)
        for column in declared.columns
        if column.computed is not None
    )
    table = Table(
        declared.name,
        fields,
        computed,
        tuple(names),
        None if watermarks is None else watermarks.column,
        watermarks,
        declared.primary_key,
        declared.options,
        made.source,
        made.sink,
        lookup=made.lookup,
        changes=made.changes,
        declared=declared,
    )
    _check_time(table, declared)
    return table


def _as_read(stored: tuple[Field, ...], made: Made) -> tuple[Field, ...]:
    """Rows that take others back may know their key alone, and say what they do in one more column."""
    if not made.tells_kinds:
        return stored
    return (*(replace(field, is_nullable=True) for field in stored), Field(ROW_KIND, STRING))


def _check_names(declared: CreateTable) -> None:
    if not declared.columns:
        raise SqlError.unreadable(declared.place, f"table {declared.name!r} has no columns")
    seen: set[str] = set()
    for column in declared.columns:
        if column.name in seen:
            raise SqlError.already_there(column.place, "column", column.name)
        if column.name == ROW_KIND or column.name.startswith("__"):
            raise SqlError.reserved(column.place, column.name)
        seen.add(column.name)


def _field(column: ColumnText, declared: CreateTable) -> Field:
    assert column.type is not None
    try:
        found = written_type(column.type).type
    except Refused as error:
        raise SqlError.wrong_expression(column.place, str(error), "declare the column otherwise") from None
    is_key = column.name in declared.primary_key
    return Field(column.name, found, is_nullable=column.is_nullable and not is_key)


def _schema(fields: tuple[Field, ...], place: Place) -> Schema:
    try:
        return Schema.of(pa.schema([pa.field(f.name, f.type.arrow, f.is_nullable) for f in fields]))
    except SchemaError as error:
        raise SqlError.wrong_expression(place, str(error), "declare the columns otherwise") from None


def _check_time(table: Table, declared: CreateTable) -> None:
    """Bind what is computed, and see that the column of the watermark is a time."""
    scan = scanned(table) if table.time is None else scanned(replace(table, time=None))
    if table.time is None:
        return
    assert declared.watermark is not None
    place = Place.of(declared.place.text, declared.watermark.column)
    if table.time not in scan.by_name:
        raise SqlError.no_column(place, table.time, scan.names)
    if not scan.by_name[table.time].type.is_timestamp:
        raise SqlError.wrong_type(
            place,
            f"column {table.time!r}, which the WATERMARK is for,",
            str(scan.by_name[table.time].type),
            "a timestamp",
        )


def _watermarks(given: WatermarkText, declared: CreateTable, options: Options) -> Watermarks:
    """Event time is the largest value so far, less an interval; Flink SQL's watermark is that moment itself."""
    text = declared.place.text
    column = given.column
    if not isinstance(column, exp.Column) or len(column.parts) != 1:
        raise SqlError.not_supported(
            Place.of(text, column), "a WATERMARK for a part of a column", "compute a column of it: ts AS a.b"
        )
    delay_ms = _delay_ms(given.expression, column.name, text)
    made = Watermarks(column.name, delay_ms - 1)  # streams hold the watermark a millisecond before that
    if (idle := options.duration("scan.watermark.idle-timeout")) is not None:
        made = made.with_idleness(idle)
    group, drift = (
        options.text("scan.watermark.alignment.group"),
        options.duration("scan.watermark.alignment.max-drift"),
    )
    if (group is None) != (drift is None):
        raise options.bad(
            "scan.watermark.alignment.group", "goes with 'scan.watermark.alignment.max-drift'", "give both"
        )
    return made if group is None or drift is None else made.aligned(group, drift)


def _delay_ms(tree: exp.Expr, column: str, text: str) -> int:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if _is_column(tree, column):
        return 0
    if isinstance(tree, exp.Sub) and _is_column(tree.this, column):
        term = bound_tree(tree.expression, Values((), ()), text).term
        if term.type.kind == "interval day" and isinstance(term.literal, int) and term.literal % 1000 == 0:
            return term.literal // 1000
    raise SqlError.not_supported(
        Place.of(text, tree), "this WATERMARK", f"write {column} or {column} - INTERVAL '5' SECOND"
    )


def _is_column(tree: exp.Expr, name: str) -> bool:
    return isinstance(tree, exp.Column) and len(tree.parts) == 1 and tree.name == name


# -- LIKE -------------------------------------------------------------------------------------------------------------


def _with_likeness(catalog: Catalog, statement: CreateTable) -> CreateTable:
    """The statement, with what it takes over from another table."""
    if statement.like is None:
        return statement
    other = catalog.get(statement.like)
    if other is None:
        raise SqlError.no_table(statement.place, statement.like, catalog.tables())
    if not isinstance(other, Table) or other.declared is None:
        raise SqlError.not_supported(
            statement.place, f"LIKE {statement.like}, which no CREATE TABLE has made,", "name another table"
        )
    leaves = statement.like_leaves_out
    if unknown := sorted(leaves - _LIKE_PARTS):
        raise SqlError.unreadable(statement.place, f"EXCLUDING {unknown[0]} is not known")
    old = other.declared
    columns = tuple(column for column in old.columns if not _is_left_out(column, leaves))
    return replace(
        statement,
        columns=(*columns, *statement.columns),
        watermark=statement.watermark or (None if leaves & {"WATERMARKS", "ALL"} else old.watermark),
        primary_key=statement.primary_key or (() if leaves & {"CONSTRAINTS", "ALL"} else old.primary_key),
        partitioned_by=statement.partitioned_by or (() if leaves & {"PARTITIONS", "ALL"} else old.partitioned_by),
        options=_merged({} if leaves & {"OPTIONS", "ALL"} else old.options, statement.options),
    )


def _is_left_out(column: ColumnText, leaves: frozenset[str]) -> bool:
    if column.computed is not None:
        return bool(leaves & {"GENERATED", "ALL"})
    return column.metadata is not None and bool(leaves & {"METADATA", "ALL"})


def _merged(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    return {**old, **new}
