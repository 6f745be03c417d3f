"""What Headwater gives for a case, in the form that Flink's results are recorded in."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from expression_tables import TABLES

from headwater.data.expressions import compile_select, run
from headwater.data.functions.types import Type, type_of
from headwater.data.schema import Schema
from headwater.errors import SchemaError

SCHEMAS = {name: Schema.of(table.headwater) for name, table in TABLES.items()}


def _read(value: Any, dtype: Type) -> Any:
    if value is None:
        return None
    if dtype.kind in ("float", "double"):
        return float(value)
    if dtype.kind == "decimal":
        return Decimal(value)
    if dtype.kind == "binary":
        return bytes.fromhex(value)
    if dtype.kind == "date":
        return dt.date.fromisoformat(value)
    if dtype.kind in ("timestamp", "timestamp_ltz"):
        at = dt.datetime.fromisoformat(value)
        return at.replace(tzinfo=dt.UTC) if dtype.kind == "timestamp_ltz" else at
    if dtype.kind == "array":
        return [_read(item, dtype.item) for item in value]
    if dtype.kind == "map":
        return [(_read(key, dtype.parts[0]), _read(item, dtype.item)) for key, item in value]
    if dtype.kind == "row":
        fields = zip(dtype.names, value, dtype.parts, strict=True)
        return {name: _read(item, part) for name, item, part in fields}
    return value


def _table(name: str) -> pa.Table:
    schema = SCHEMAS[name].arrow
    columns = zip(*TABLES[name].rows, strict=True)
    arrays = [pa.array([_read(v, type_of(f.type)) for v in c], f.type) for f, c in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


BATCHES = {name: _table(name) for name in TABLES}


def shown(value: Any, dtype: Type) -> Any:
    if value is None:
        return None
    if dtype.kind in ("float", "double"):
        named = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN" if math.isnan(value) else None)
        return named or (float(str(np.float32(value))) if dtype.kind == "float" else value)
    if dtype.kind == "decimal":
        return f"{value:f}"
    if dtype.kind == "binary":
        return value.hex()
    if dtype.kind == "date":
        return value.isoformat()
    if isinstance(value, _Late):
        return str(np.datetime64(int(value), "us"))
    if dtype.kind in ("timestamp", "timestamp_ltz"):
        return value.replace(tzinfo=None).isoformat()
    if dtype.kind == "interval day":
        return int(value / dt.timedelta(milliseconds=1))
    if dtype.kind == "array":
        return [shown(item, dtype.item) for item in value]
    if dtype.kind == "map":
        return [[shown(key, dtype.parts[0]), shown(item, dtype.item)] for key, item in value]
    if dtype.kind == "row":
        return [shown(item, part) for item, part in zip(value.values(), dtype.parts, strict=True)]
    return value


def evaluate(table: str, expression: str) -> dict[str, Any]:
    """`refused` with the error, or the type and a value or an error for every row."""
    try:
        query, schema = compile_select([f"{expression} as result"], SCHEMAS[table], "select")
    except SchemaError as error:
        return {"refused": str(error)}
    dtype = type_of(schema.arrow.field("result").type)
    batch = BATCHES[table]
    try:
        values = _values(query, batch, schema, dtype)
    except (duckdb.Error, pa.ArrowException):  # some row fails: which of them
        values = []
        for at in range(len(batch)):
            try:
                values += _values(query, batch.slice(at, 1), schema, dtype)
            except (duckdb.Error, pa.ArrowException) as error:
                values.append({"error": str(error).split("\n")[0]})
    return {"type": str(dtype), "values": values}


def _values(query: str, batch: pa.Table, schema: Schema, dtype: Type) -> list[dict[str, Any]]:
    result, _ = run(query, batch, schema.arrow)
    return [{"value": shown(value, dtype)} for value in _python(result.column(0))]


def _python(column: pa.ChunkedArray) -> list[Any]:
    """Python's values; times beyond its years as text."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [None if value is None else _Late(value) for value in column.cast(pa.int64()).to_pylist()]


class _Late(int):
    """A time beyond the year 9999, in microseconds."""


def plain_type(flink: str) -> str:
    """Flink's name of a type as ours, without the length of strings and the places of times."""
    text = flink.lower().replace(" not null", "").replace("'", "").replace("`", "")
    text = re.sub(r"(var)?char\(\d+\)", "string", text)
    text = re.sub(r"bytes|(var)?binary\(\d+\)", "binary", text)
    text = re.sub(r"(timestamp(_ltz)?)\(\d\)", r"\1", text)
    text = re.sub(r"interval day.*|interval hour.*|interval minute.*|interval second.*", "interval day", text)
    return re.sub(r",\s+", ",", text)


def same(flink: Any, ours: Any, *, is_float: bool = False, is_map: bool = False) -> bool:
    """Whether two values are the same: floats in fifteen digits, as sines and logarithms differ in the last."""
    if isinstance(flink, list) and isinstance(ours, list):
        if is_map:  # whose order means nothing
            flink, ours = (sorted(pairs, key=repr) for pairs in (flink, ours))
        return len(flink) == len(ours) and all(same(a, b) for a, b in zip(flink, ours, strict=True))
    if isinstance(ours, float) or isinstance(flink, float):
        try:
            if is_float:
                return bool(np.float32(flink) == np.float32(ours))
            return math.isclose(float(flink), float(ours), rel_tol=1e-14) or flink == ours
        except (TypeError, ValueError):
            return False
    if isinstance(flink, str) and isinstance(ours, str) and re.match(r"[+]?\d{4,}-\d\d-\d\dT", flink):
        return bool(np.datetime64(flink.lstrip("+")) == np.datetime64(ours))
    return flink == ours and type(flink) is type(ours)


def differences(flink: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """In a few words each, how a result differs from Flink's: as a whole, or in the rows that differ."""
    if "refused" in flink or "refused" in ours:
        if "refused" in flink and "refused" in ours:
            return []
        return [f"refused by {'Flink' if 'refused' in flink else 'us'}: {flink.get('refused') or ours.get('refused')}"]
    if plain_type(flink["type"]) != ours["type"]:
        return [f"type {flink['type']} in Flink, {ours['type']} here"]
    kinds = {"is_float": ours["type"] == "float", "is_map": ours["type"].startswith("map<")}
    found = []
    for at, (one, other) in enumerate(zip(flink["values"], ours["values"], strict=True)):
        if ("error" in one) != ("error" in other):
            found.append(f"row {at}: {json.dumps(one)} in Flink, {json.dumps(other)} here")
        elif "value" in one and not same(one["value"], other["value"], **kinds):
            found.append(f"row {at}: {json.dumps(one['value'])} in Flink, {json.dumps(other['value'])} here")
    return found
