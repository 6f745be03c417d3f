"""What Headwater gives for statements, in the form that Flink's results are recorded in, and what "the same" means."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from beside import _read as read_value
from beside import plain_type, same, shown
from sql_tables import Table

import headwater as hw
from headwater.connectors.memory import MemorySink, RowsSource
from headwater.data.functions.types import type_of
from headwater.data.schema import Schema
from headwater.errors import HeadwaterError
from headwater.graph.changelog import ChangelogMode
from headwater.sql.errors import SqlError

Result = dict[str, Any]


def given(tables: Mapping[str, Table], statements: Sequence[str], rows_per_epoch: int) -> list[Result]:
    """What each statement gives; all of them are one job."""
    env = _environment(tables, rows_per_epoch)
    queries: list[_Query | Result] = []
    for statement in statements:
        try:
            queries.append(_Query(env, statement))
        except SqlError as error:
            queries.append({"refused": str(error).split("\n")[0]})
    running = [query for query in queries if isinstance(query, _Query)]
    if running:
        try:
            env.run(progress=False)
        except HeadwaterError as error:
            if len(statements) == 1:
                return [{"failed": str(error)}]
            return [given(tables, [statement], rows_per_epoch)[0] for statement in statements]
    return [query.result() if isinstance(query, _Query) else query for query in queries]


class _Query:
    """A statement and the rows it has given."""

    def __init__(self, env: hw.Environment, statement: str) -> None:
        self._sink = MemorySink()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that state grows, or that all is done in one place, is known
            self._table = env.sql(statement)
            stream = self._table.to_changelog()
            stream.sink(self._sink)
        self._changelog = stream._flow.changelog

    def result(self) -> Result:
        """The columns and the table that the changes come to."""
        fields = self._table._relation.fields
        types = [type_of(pa_type) for pa_type in (field.type.arrow for field in fields)]
        rows: list[list[Any]] = []
        is_upsert = self._changelog.mode is ChangelogMode.UPSERT
        key = [self._table.columns.index(name) for name in self._changelog.key]
        for row in self._sink.rows:
            kind = "+I" if self._changelog.is_append_only else row[-1]
            values = [shown(_pairs(value), dtype) for value, dtype in zip(row, types, strict=False)]
            if is_upsert:
                rows = [old for old in rows if [old[at] for at in key] != [values[at] for at in key]]
                if kind != "-D":
                    rows.append(values)
            elif kind in ("+I", "+U"):
                rows.append(values)
            elif values in rows:
                rows.remove(values)
            else:
                return {"failed": f"takes back a row that is not there: {values}"}
        columns = [[name, str(dtype)] for name, dtype in zip(self._table.columns, types, strict=True)]
        return {"columns": columns, "rows": rows}


def _pairs(value: Any) -> Any:
    """A map, which rows hold as a dict, as pairs; a row as a dict."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return [_pairs(item) for item in value]
    return value._asdict() if hasattr(value, "_asdict") else value


def _environment(tables: Mapping[str, Table], rows_per_epoch: int) -> hw.Environment:
    env = hw.Environment("statements", engine="local", parallelism=1, max_rows_per_epoch=rows_per_epoch)
    for name, table in tables.items():
        schema = _schema(table)
        columns = zip(*table["rows"], strict=True)
        arrays = [
            pa.array([read_value(value, type_of(field.type)) for value in column], field.type)
            for field, column in zip(schema, columns, strict=True)
        ]
        rows = pa.Table.from_arrays(arrays, schema=schema)
        time = table.get("time")
        watermarks = None if time is None else hw.Watermarks.bounded(time, f"{table['delay_ms']} ms")
        if "lookup" in table:
            env.create_table(name, rows, primary_key=tuple(table.get("key", ())))
        elif "kinds" in table:
            rows = rows.append_column("row_kind", pa.array(table["kinds"]))
            changes = env.from_rows(rows, watermarks=watermarks, name=name)
            is_upsert = "key" in table and "-U" not in table["kinds"]
            stream = changes.as_changelog(key=table["key"] if is_upsert else None, name=f"{name}_changes")
            env.create_view(name, stream, time=time)
        else:
            source = RowsSource([rows], Schema(schema))
            env.create_table(name, source, schema, watermarks, tuple(table.get("key", ())))
    return env


def _schema(table: Table) -> pa.Schema:
    fields = []
    for name, dtype in table["columns"]:
        arrow = Schema.of(f"c {ours(dtype)}").arrow.field("c").type
        fields.append(pa.field(name, arrow, nullable=not dtype.endswith("NOT NULL")))
    return pa.schema(fields)


def ours(dtype: str) -> str:
    """A type of Flink's as we write it."""
    text = dtype.removesuffix(" NOT NULL").lower()
    text = re.sub(r"timestamp_ltz\(\d\)", "timestamp_with_zone", text)
    text = re.sub(r"timestamp\(\d\)", "timestamp_ntz", text).replace("timestamp_with_zone", "timestamp")
    text = re.sub(r"row<(.*?)>", lambda row: "struct<" + re.sub(r"(\w+) (\w+)", r"\1:\2", row[1]) + ">", text)
    return text.replace("bytes", "binary")


def difference(flink: Result, here: Result) -> str | None:
    """In a few words, how a result differs from Flink's; None where it is the same."""
    wrong = [result.get("refused") or result.get("failed") for result in (flink, here)]
    if wrong[0] is not None and wrong[1] is not None:
        return None
    if wrong[0] is not None:
        return f"{'refused' if 'refused' in flink else 'failed'} by Flink: {wrong[0]}"
    if wrong[1] is not None:
        return f"{'refused' if 'refused' in here else 'failed'} by us: {wrong[1]}"
    columns = [[name, plain_type(_of_ours(dtype))] for name, dtype in flink["columns"]]
    if columns != here["columns"]:
        return f"columns {columns} in Flink, {here['columns']} here"
    types = [dtype for _, dtype in here["columns"]]
    missing, more = _unmatched(flink["rows"], here["rows"], types)
    return f"rows {missing} only in Flink, {more} only here" if missing or more else None


def _of_ours(dtype: str) -> str:
    """A multiset is a map of how often there is each value."""
    return re.sub(r"MULTISET<(.*)>$", r"MAP<\1, INT>", dtype.replace(" *ROWTIME*", ""))


def _unmatched(flink: list[Any], here: list[Any], types: list[str]) -> tuple[list[Any], list[Any]]:
    left = list(here)
    missing = []
    for row in flink:
        found = next((at for at, other in enumerate(left) if _same_rows(row, other, types)), None)
        if found is None:
            missing.append(row)
        else:
            del left[found]
    return missing, left


def _same_rows(one: list[Any], other: list[Any], types: list[str]) -> bool:
    return all(
        same(a, b, is_float=dtype == "float", is_map=dtype.startswith("map<"))
        for a, b, dtype in zip(one, other, types, strict=True)
    )
