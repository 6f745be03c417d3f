"""What `lookup_join` is given, checked before the step is made, and tables in memory made ready to travel with the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.data.schema import Schema, SchemaLike
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError, SchemaError, StateError
from headwater.lookups import LookupTable
from headwater.state.keys import is_key_type
from headwater.streams.keying import On, joined_columns

Cache = Literal["full"] | int | None

MAX_TABLE_BYTES = 64 << 20
"""What travels with the plan is read by every worker process and stays in its memory."""
_TEXT = (pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_fixed_size_list)
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


class LookupJoin:
    """The arguments of one `lookup_join`: read, checked, and as the settings of its node."""

    def __init__(self, step: str, rows: Schema, table: Any, on: On, schema: SchemaLike | None) -> None:
        self._step, self._rows = step, rows
        pairs = joined_columns(on, step)
        self.keys = tuple(pairs)
        self.right: Any = table
        self.right_keys = tuple(pairs.values())
        self._is_outside = True
        if isinstance(table, LookupTable):
            self._schema = table.schema
        elif _is_table(table):
            self.right, self._is_outside = _arrow_table(step, table), False
            self._schema = Schema.of(self.right.schema)
        elif callable(table) and not isinstance(table, type):
            if isinstance(on, Mapping):
                raise self._refused("takes the stream's columns for the keys of a function", on, f"write on={[*on]}")
            if schema is None:
                raise self._refused(
                    "needs the schema of what the function finds", None, "add schema='name string, …', without the keys"
                )
            self._schema = Schema.of(schema)
        else:
            raise self._refused(
                "needs a pyarrow Table, a DataFrame, a hw.connectors.PostgresTable or a function",
                type(table).__name__,
                "pass one of them",
            )
        self._is_function = callable(table)
        if schema is not None and not self._is_function:
            raise self._refused(
                "takes a schema for a function only", str(schema), "leave it out: the table has its own"
            )

    def settings(
        self, *, how: str, columns: Sequence[str] | None, suffix: str, cache: Cache, ttl: Duration | None
    ) -> tuple[Schema, dict[str, Any]]:
        """The schema of the results and the settings of the node."""
        if how not in ("left", "inner"):
            raise self._refused("joins 'left' or 'inner'", how, "choose one of them")
        ttl_ms = self._ttl_ms(cache, ttl)
        key_types = tuple(self._key_type(left, right) for left, right in zip(self.keys, self.right_keys, strict=True))
        found = self._columns(columns)
        if not self._is_outside:
            self.right = self._ready_to_travel(found.names)
        settings = {
            "keys": self.keys,
            "key_types": key_types,
            "right": self.right,
            "right_keys": self.right_keys,
            "right_schema": found,
            "keeps_unmatched": how == "left",
            "cache": cache,
            "ttl_ms": ttl_ms,
        }
        return self._joined(found, suffix, keeps_unmatched=how == "left"), settings

    def _ttl_ms(self, cache: Any, ttl: Duration | None) -> int | None:
        if not self._is_outside and (cache is not None or ttl is not None):
            raise self._refused(
                "has its table in memory, so there is nothing to cache",
                f"cache={cache!r}, ttl={ttl!r}",
                "leave them out; a table that changes is a hw.connectors.PostgresTable or a function",
            )
        if cache is not None and cache != "full" and (type(cache) is not int or cache < 1):
            raise self._refused("caches a number of keys, or 'full'", cache, "write cache=10_000, or None for no cache")
        if cache == "full" and self._is_function:
            raise self._refused(
                "cannot load all that a function would find", cache, "give a number of keys, or pass the table itself"
            )
        if ttl is None:
            return None
        if cache is None:
            raise self._refused("has a ttl but no cache", ttl, "add cache=10_000, or leave it out")
        return duration_ms(ttl, what=f"the ttl of step {self._step!r}")

    def _key_type(self, left: str, right: str) -> pa.DataType:
        """The type in which a key is compared: the same on both sides, or that of all integers."""
        dtype = _field(self._rows, left, self._step).type
        if not is_key_type(dtype):
            raise StateError.bad_key_type(self._step, dtype)
        if self._is_function:
            return dtype
        other = _field(self._schema, right, self._step).type
        if dtype == other:
            return dtype
        if pa.types.is_integer(dtype) and pa.types.is_integer(other):
            return pa.int64()
        raise self._refused(
            f"joins {left!r} ({dtype}) with {right!r} ({other})", "two types", "cast one of them with select first"
        )

    def _columns(self, columns: Sequence[str] | None) -> Schema:
        if self._is_function:
            if columns is not None:
                raise self._refused("brings all that a function finds", columns, "declare in schema= what you want")
            return self._schema
        if columns is None:
            fields = [field for field in self._schema.arrow if field.name not in self.right_keys]
        elif isinstance(columns, str) or set(columns) & set(self.right_keys):
            raise self._refused("brings a list of columns that are not its keys", columns, "name the others")
        else:
            fields = [_field(self._schema, name, self._step) for name in columns]
        if not fields:
            raise self._refused("must bring a column", [], "name one in columns=, or use where to filter")
        return Schema.of(pa.schema(fields))

    def _joined(self, found: Schema, suffix: str, *, keeps_unmatched: bool) -> Schema:
        fields = list(self._rows.arrow)
        for field in found.arrow:
            name = field.name + suffix if field.name in self._rows.names else field.name
            fields.append(pa.field(name, field.type, field.nullable or keeps_unmatched))
        names = [field.name for field in fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise self._refused("would have two columns of one name", ", ".join(twice), "choose another suffix=")
        return Schema.of(pa.schema(fields))

    def _ready_to_travel(self, names: list[str]) -> pa.Table:
        table = self.right.select([*dict.fromkeys(self.right_keys), *names])
        if table.nbytes > MAX_TABLE_BYTES:
            raise self._refused(
                f"takes a table of up to {MAX_TABLE_BYTES >> 20} MiB along to the workers",
                f"{table.nbytes >> 20} MiB",
                "take fewer rows, or fewer columns with columns=, or look them up in a hw.connectors.PostgresTable",
            )
        return table.take(np.arange(len(table)))  # a copy: the buffers of a slice would travel whole

    def _refused(self, rule: str, fact: object, action: str) -> GraphError:
        return GraphError.bad_argument(self._step, rule, fact, action)


def _field(schema: Schema, name: str, step: str) -> pa.Field:
    if name not in schema.names:
        raise SchemaError.no_field(name, schema.names, step)
    return schema.field(name)


def _is_table(table: Any) -> bool:
    """Whether this is a table in memory, or a static DataFrame of Spark's; only duck types, so that nothing is imported."""
    return not isinstance(table, type) and (hasattr(table, "toArrow") or hasattr(table, "__arrow_c_stream__"))


def _arrow_table(step: str, given: Any) -> pa.Table:
    """A table of types that streams have, with its values as they are; an index that pandas made is left out."""
    if getattr(given, "isStreaming", False):
        raise GraphError.bad_argument(
            step, "looks rows up in a table that stands still", "a streaming DataFrame", "pass a static one"
        )
    table: pa.Table = given.toArrow() if hasattr(given, "toArrow") else pa.table(given)
    names = [name for name in table.column_names if not name.startswith("__index_level_")]
    table = table.select(names).replace_schema_metadata(None)
    fields = [pa.field(f.name, _carried(f.type), f.nullable) for f in table.schema]
    Schema.of(pa.schema(fields))  # refuses what no stream can carry
    columns = []
    for column, field in zip(table.columns, fields, strict=True):
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowException as error:
            raise SchemaError.does_not_fit(
                step, f"column {field.name!r} of the table cannot be {field.type}: {error}", "cast it in the table"
            ) from None
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)).combine_chunks()


def _carried(dtype: pa.DataType) -> pa.DataType:
    """The type in which streams carry the values of an Arrow type."""
    if pa.types.is_dictionary(dtype):
        return _carried(dtype.value_type)
    if _is_any(dtype, _TEXT):
        return pa.string()
    if _is_any(dtype, _BYTES):
        return pa.binary()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    if pa.types.is_duration(dtype):
        return pa.duration("us")
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _carried(f.type), f.nullable) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_carried(dtype.key_type), _carried(dtype.item_type))
    if _is_any(dtype, _LISTS):
        return pa.list_(_carried(dtype.value_type))
    return _WIDER.get(dtype, dtype)


def _is_any(dtype: pa.DataType, tests: Iterable[Callable[[pa.DataType], bool]]) -> bool:
    return any(test(dtype) for test in tests)
