"""From expressions to one query of DuckDB's over a batch, and the schema of what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.data.expressions.binding import Binder
from headwater.data.expressions.dialect import parse
from headwater.data.expressions.errors import ExpressionError
from headwater.data.expressions.running import NOW, PLACE
from headwater.data.expressions.stages import Stage
from headwater.data.functions.terms import Term
from headwater.data.functions.types import quoted
from headwater.data.schema import Schema
from headwater.errors import SchemaError

_Column = tuple[str, str, pa.DataType]
"""The name of a column of the result, its text in DuckDB, its type."""


def select(expressions: Sequence[str], schema: Schema, step: str) -> tuple[str, Schema]:
    """The query for some expressions, and the schema of its result. `*` stands for all columns."""
    binder = Binder.of(schema, step)
    columns: dict[str, _Column] = {}
    for text in expressions:
        for column in _columns(text, schema, binder, step):
            if column[0] in columns:
                raise SchemaError.duplicate_field(column[0], ", ".join(expressions))
            if column[0].startswith("__"):
                raise SchemaError.reserved_name(column[0])
            columns[column[0]] = column
    texts = [f"{sql} AS {quoted(name)}" for name, sql, _ in columns.values()]
    return _query(texts, ""), Schema(pa.schema([pa.field(name, dtype) for name, _, dtype in columns.values()]))


def where(text: str, schema: Schema, step: str) -> str:
    """The query that keeps the rows for which an expression is true."""
    tree = parse(text, step)
    if isinstance(tree, exp.Alias | exp.Star):
        raise ExpressionError.no_condition(step, text, "a name" if isinstance(tree, exp.Alias) else "a star")
    condition = Binder.of(schema, step).bind(tree, text)
    if condition.type.kind not in ("boolean", "null"):
        raise ExpressionError.no_condition(step, text, str(condition.type))
    return _query([f"{_kept(field)} AS {quoted(field.name)}" for field in schema.arrow], f" WHERE {condition.sql}")


def computed(stages: Sequence[Stage]) -> tuple[str, Schema]:
    """The query for stages, each over what the one before it gives, and the schema of what the last one gives."""
    source = "batch"
    for stage in stages[:-1]:
        texts = [f"{_typed(term)} AS {quoted(name)}" for name, term in stage.columns]
        hidden = [PLACE, NOW] if any(reads_clock(other) for other in stages) else [PLACE]
        inner = ", ".join([*texts, *map(quoted, hidden)])
        source = f"(SELECT {inner} FROM {source}{_where(stage)}) AS batch"  # noqa: S608  as _query
    texts, fields = [], []
    for name, term in stages[-1].columns:
        dtype = term.type.arrow or (pa.duration("us") if term.type.kind == "interval day" else None)
        assert dtype is not None, term
        sql = f"epoch_us({term.sql})" if pa.types.is_duration(dtype) else term.sql
        texts.append(f"{sql} AS {quoted(name)}")
        fields.append(pa.field(name, dtype))
    return _query(texts, _where(stages[-1]), source), Schema(pa.schema(fields))


def reads_clock(stage: Stage) -> bool:
    """Whether something of a stage depends on processing time."""
    terms = [term for _, term in stage.columns] + ([] if stage.condition is None else [stage.condition])
    return any(quoted(NOW) in term.sql for term in terms)


def _where(stage: Stage) -> str:
    return "" if stage.condition is None else f" WHERE {stage.condition.sql}"


def _typed(term: Term) -> str:
    """As what it would be between two steps; a column is that already."""
    return term.sql if term.sql.startswith('"') else f"CAST({term.sql} AS {term.type.duckdb})"


def _query(columns: Sequence[str], condition: str, source: str = "batch") -> str:
    return f"SELECT {', '.join([*columns, quoted(PLACE)])} FROM {source}{condition}"  # noqa: S608  names are quoted, and all else is of the table


def _columns(text: str, schema: Schema, binder: Binder, step: str) -> Iterator[_Column]:
    tree = parse(text, step)
    if isinstance(tree, exp.Star):
        yield from _star(tree, text, schema, binder, step)
        return
    inner = tree.this if isinstance(tree, exp.Alias) else tree
    term = binder.bind(inner, text)
    if isinstance(inner, exp.Column) and len(inner.parts) == 1:
        source = binder.column(inner.name)
        yield tree.alias or source, _kept(schema.arrow.field(source)), schema.arrow.field(source).type
        return
    if not isinstance(tree, exp.Alias | exp.Column | exp.Dot):
        raise ExpressionError.unnamed_expression(step, text)
    dtype = term.type.arrow
    if dtype is None or pa.types.is_null(dtype):
        raise ExpressionError.no_such_column(step, text, str(term.type))
    yield tree.alias_or_name, term.sql, dtype


def _kept(field: pa.Field) -> str:
    """A column as it is. DuckDB gives intervals back in parts, so they pass through as microseconds."""
    return f"epoch_us({quoted(field.name)})" if pa.types.is_duration(field.type) else quoted(field.name)


def _star(tree: exp.Star, text: str, schema: Schema, binder: Binder, step: str) -> Iterator[_Column]:
    """All columns, but those of `* EXCEPT (a, b)`, which EXCLUDE means too."""
    if any(tree.args.get(name) for name in ("replace", "rename", "ilike")):
        raise ExpressionError.not_an_expression(step, text, text)
    left_out = set()
    for column in tree.args.get("except_") or ():
        if not isinstance(column, exp.Column) or len(column.parts) != 1:
            raise ExpressionError.not_an_expression(step, text, column.sql())
        left_out.add(binder.column(column.name))
    for field in schema.arrow:
        if field.name not in left_out:
            yield field.name, _kept(field), field.type
