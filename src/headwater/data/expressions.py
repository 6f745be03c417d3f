"""SQL expressions over Arrow batches: written in Spark's dialect, checked when the graph is built, run by DuckDB.

sqlglot parses each expression by itself and writes the DuckDB text, so what reaches the database is always one SELECT of
scalar expressions over one batch, never text a user glued together. Both libraries are imported on first use, as most
workers need neither.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.errors import SchemaError

if TYPE_CHECKING:
    import duckdb
    from sqlglot import exp

_DIALECT = "databricks"
"""sqlglot's name for Spark SQL in ANSI mode, the default since Spark 4: a cast that fails is an error, not a null."""
_PLACE = "__place"
"""The hidden column with a row's place in its batch, carried through a query untouched."""


def compile_select(expressions: Sequence[str], schema: Schema, step: str) -> tuple[str, Schema]:
    """The DuckDB query for some expressions, and the schema of its result. `*` stands for all columns."""
    from sqlglot import exp

    columns: list[exp.Expression] = []
    for text in expressions:
        parsed = _parse(text, schema, step)
        if isinstance(parsed, exp.Star):
            columns.extend(exp.column(name, quoted=True) for name in schema.names)
        elif isinstance(parsed, exp.Column | exp.Alias):
            columns.append(parsed)
        else:
            raise SchemaError.does_not_fit(step, f"expression {text!r} has no name", "write 'expression as name'")
    names = [column.alias_or_name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError.duplicate_field(name, ", ".join(expressions))
        if name.startswith("__"):
            raise SchemaError.reserved_name(name)
    query = _query(columns, None)
    return query, _result_schema(query, schema, step)


def compile_where(text: str, schema: Schema, step: str) -> str:
    """The DuckDB query that keeps the rows for which an expression is true."""
    from sqlglot import exp

    condition = _parse(text, schema, step)
    if isinstance(condition, exp.Alias | exp.Star):
        raise SchemaError.does_not_fit(step, f"{text!r} is no condition", "write a boolean expression without a name")
    columns = [exp.column(name, quoted=True) for name in schema.names]
    query = _query(columns, condition)
    _result_schema(query, schema, step)
    return query


def run(query: str, table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Run a compiled query over a batch: the results, in order, and the place of the row that each is of."""
    connection = _connection()
    connection.register("batch", table.append_column(_PLACE, pa.array(np.arange(len(table)))))
    try:
        result = connection.sql(query).to_arrow_table()
    finally:
        connection.unregister("batch")
    places: npt.NDArray[np.int64] = result.column(_PLACE).to_numpy()
    return result.drop_columns([_PLACE]).cast(schema), places


def _query(columns: Sequence[exp.Expression], condition: exp.Expression | None) -> str:
    from sqlglot import exp

    select = exp.select(*columns, exp.column(_PLACE, quoted=True)).from_("batch")
    if condition is not None:
        select = select.where(condition)
    return select.sql(dialect="duckdb")


def _parse(text: str, schema: Schema, step: str) -> exp.Expression:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    refused = (exp.Subquery, exp.Select, exp.AggFunc, exp.Window, exp.Command, exp.DDL, exp.DML, exp.Placeholder)
    changing = (
        exp.Rand,
        exp.Randn,
        exp.Uuid,
        exp.CurrentTimestamp,
        exp.CurrentDate,
        exp.CurrentTime,
        exp.CurrentDatetime,
    )
    try:
        parsed = sqlglot.parse(text, dialect=_DIALECT)
    except SqlglotError as error:
        raise SchemaError.does_not_fit(step, f"cannot read {text!r}: {error}", "correct the SQL expression") from None
    if len(parsed) != 1 or parsed[0] is None or parsed[0].find(*refused):
        raise SchemaError.does_not_fit(
            step,
            f"{text!r} is not one scalar expression",
            "aggregates, subqueries and statements are not for select and where",
        )
    expression = parsed[0]
    if expression.find(*changing):
        raise SchemaError.does_not_fit(
            step,
            f"{text!r} gives another value each time, so a replay would differ",
            "use a column, or ctx.now in a function",
        )
    assert isinstance(expression, exp.Expression)
    known = {name.lower(): name for name in schema.names}
    for column in expression.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        name = column.parts[0].name
        if name.lower() not in known:
            raise SchemaError.no_field(name, schema.names, step)
        column.parts[0].replace(exp.to_identifier(known[name.lower()], quoted=True))
    return expression


def _result_schema(query: str, schema: Schema, step: str) -> Schema:
    import duckdb

    empty = schema.arrow.append(pa.field(_PLACE, pa.int64())).empty_table()
    connection = _connection()
    connection.register("batch", empty)
    try:
        result = connection.sql(query).to_arrow_table().schema
    except duckdb.Error as error:
        raise SchemaError.does_not_fit(
            step, f"the expressions do not fit the schema: {error}", "correct them"
        ) from None
    finally:
        connection.unregister("batch")
    by_name = {field.name: field.type for field in schema.arrow}
    fields = []
    for field in result:
        if field.name != _PLACE:
            source = by_name.get(field.name)
            fields.append(pa.field(field.name, source if _alike(source, field.type) else _plain_type(field.type)))
    return Schema(pa.schema(fields))


def _alike(source: pa.DataType | None, result: pa.DataType) -> bool:
    """Whether the result is the source's type but for the names DuckDB gives to the parts of nested types."""
    return source is not None and type_ddl(_plain_type(source)) == type_ddl(_plain_type(result))


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type as Headwater writes it: DuckDB names list items after their column and makes 128-bit sums."""
    if dtype == pa.decimal128(38, 0):
        return pa.int64()
    if pa.types.is_unsigned_integer(dtype):
        return pa.int64()
    if pa.types.is_list(dtype):
        return pa.list_(_plain_type(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _plain_type(f.type)) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_plain_type(dtype.key_type), _plain_type(dtype.item_type))
    type_ddl(dtype)
    return dtype


_connections: dict[int, duckdb.DuckDBPyConnection] = {}
"""By thread. A `threading.local` would do, but a process that is forked off by another thread closes what is in it, with
threads that it does not have: it crashes before it becomes Spark's JVM."""


def _connection() -> duckdb.DuckDBPyConnection:
    """An in-memory database per thread, closed to files and network; it uses one core, as Spark runs a task per core."""
    import duckdb

    connection = _connections.get(threading.get_ident())
    if connection is None:
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "enable_external_access": False,
            "preserve_insertion_order": True,
        }
        connection = _connections[threading.get_ident()] = duckdb.connect(config=config)
        connection.execute("SET TimeZone='UTC'")
    return connection
