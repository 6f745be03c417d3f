"""Rows joined with a table outside the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa

from headwater.data.functions.terms import Term
from headwater.data.schema import Schema, SchemaLike
from headwater.data.tables import arrow_table, is_table
from headwater.data.types import is_key_type
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError, SchemaError, StateError
from headwater.graph.changelog import APPEND, APPEND_OR_RETRACT, Modes
from headwater.graph.edges import On, joined_columns
from headwater.graph.flow import Flow
from headwater.graph.nodes.conditions import condition_query
from headwater.graph.nodes.core import Node
from headwater.graph.nodes.joins import SUFFIX
from headwater.lookups import LookupTable

Cache = Literal["full"] | int | None
"""How many keys are kept, or the whole table."""

MAX_TABLE_BYTES = 64 << 20
"""What travels with the plan is read by every worker process and stays in its memory."""


@dataclass(frozen=True, kw_only=True)
class LookupJoinNode(Node):
    """Each row together with the rows of a table outside the job that have its key."""

    operation: ClassVar[str] = "lookup_join"

    keys: tuple[str, ...]
    """The stream's columns that make the key."""
    key_types: tuple[pa.DataType, ...]
    """The types in which keys are compared."""
    right: pa.Table | LookupTable | Callable[[list[Any]], Mapping[Any, Any]]
    """A table that travels with the plan, its key columns first; or what is asked by key."""
    right_keys: tuple[str, ...]
    right_schema: Schema
    """What the table adds to a row, under its own names."""
    keeps_unmatched: bool
    cache: Cache
    ttl_ms: int | None
    condition: str | None = None
    """A query of DuckDB over pairs: they are those of which it keeps something."""

    @classmethod
    def of(  # noqa: PLR0913  each is a choice of its own, and all but two have a default
        cls,
        flow: Flow,
        *,
        table: Any,
        on: On,
        how: str = "left",
        columns: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        condition: Term | None = None,
        suffix: str = SUFFIX,
        schema: SchemaLike | None = None,
        cache: Cache = None,
        ttl: Duration | None = None,
        name: str = "lookup_join",
    ) -> Self:
        """`table` is a table or frame in memory, a `LookupTable`, or a function of keys whose rows have `schema`.

        With `names` for the `columns`, keys may be among these. `condition` is about both sides' columns.
        """
        given = _Given(name, flow.schema, table, on, schema)
        result, settings = given.settings(
            how=how, columns=columns, names=names, suffix=suffix, cache=cache, ttl=ttl, condition=condition
        )
        return cls(name=name, inputs=flow.edges, schema=result, changelog=flow.changelog.retracting(), **settings)

    def takes(self, side: int) -> Modes:
        """What is taken back must have been given, and only a table that travels along gives the same answer again."""
        return APPEND if self.asks_outside else APPEND_OR_RETRACT

    @property
    def asks_outside(self) -> bool:
        return not isinstance(self.right, pa.Table)


class _Given:
    """What a look-up join is given: read, checked, and as the settings of its node."""

    def __init__(self, step: str, rows: Schema, table: Any, on: On, schema: SchemaLike | None) -> None:
        self._step, self._rows = step, rows
        pairs = joined_columns(on, step)
        self.keys = tuple(pairs)
        self.right: Any = table
        self.right_keys = tuple(pairs.values())
        self._is_outside = True
        if isinstance(table, LookupTable):
            self._schema = table.schema
        elif is_table(table):
            self.right, self._is_outside = arrow_table(step, table), False
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
        self,
        *,
        how: str,
        columns: Sequence[str] | None,
        names: Sequence[str] | None,
        suffix: str,
        cache: Cache,
        ttl: Duration | None,
        condition: Term | None,
    ) -> tuple[Schema, dict[str, Any]]:
        """The schema of the results and the settings of the node."""
        if how not in ("left", "inner"):
            raise self._refused("joins 'left' or 'inner'", how, "choose one of them")
        ttl_ms = self._ttl_ms(cache, ttl)
        key_types = tuple(self._key_type(left, right) for left, right in zip(self.keys, self.right_keys, strict=True))
        found = self._columns(columns, may_be_keys=names is not None)
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
            "condition": condition_query(condition),
        }
        return self._joined(found, names, suffix, keeps_unmatched=how == "left"), settings

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

    def _columns(self, columns: Sequence[str] | None, *, may_be_keys: bool) -> Schema:
        if self._is_function:
            if columns is not None:
                raise self._refused("brings all that a function finds", columns, "declare in schema= what you want")
            return self._schema
        if columns is None:
            fields = [field for field in self._schema.arrow if field.name not in self.right_keys]
        elif isinstance(columns, str) or (not may_be_keys and set(columns) & set(self.right_keys)):
            raise self._refused("brings a list of columns that are not its keys", columns, "name the others")
        else:
            fields = [_field(self._schema, name, self._step) for name in columns]
        if not fields:
            raise self._refused("must bring a column", [], "name one in columns=, or use where to filter")
        return Schema.of(pa.schema(fields))

    def _joined(self, found: Schema, names: Sequence[str] | None, suffix: str, *, keeps_unmatched: bool) -> Schema:
        fields = list(self._rows.arrow)
        if names is None:
            names = [name + suffix if name in self._rows.names else name for name in found.names]
        for name, field in zip(names, found.arrow, strict=True):
            fields.append(pa.field(name, field.type, field.nullable or keeps_unmatched))
        given = [field.name for field in fields]
        twice = sorted({name for name in given if given.count(name) > 1})
        if twice:
            raise self._refused("would have two columns of one name", ", ".join(twice), "choose another suffix=")
        return Schema.of(pa.schema(fields))

    def _ready_to_travel(self, names: list[str]) -> pa.Table:
        table = self.right.select(list(dict.fromkeys([*self.right_keys, *names])))
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
