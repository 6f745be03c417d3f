"""A query of SQL under the hand: rows go into its tables, and what it gives comes out, with what each row does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.data.row_kinds import ROW_KIND, ROW_KIND_FIELD
from headwater.data.schema import Schema, SchemaLike
from headwater.streams.stream import Stream
from headwater.testing.harness import Harness
from headwater.words import StateBackendName

_KINDS = ("+I", "-U", "+U", "-D")


class SqlHarness(Harness):
    """Drives a query; `Harness.sql` makes it."""

    def __init__(
        self,
        query: str,
        tables: Mapping[str, SchemaLike],
        *,
        time: Mapping[str, str],
        keys: Mapping[str, str | Sequence[str]],
        parallelism: int,
        state_backend: StateBackendName,
    ) -> None:
        self._keys = {name: (key,) if isinstance(key, str) else tuple(key) for name, key in keys.items()}
        for name in [*time, *keys]:
            if name not in tables:
                raise ValueError(f"the query's tables are {', '.join(tables)}; got {name!r}")
        schemas = {name: self._with_kind(name, Schema.of(schema)) for name, schema in tables.items()}

        def build(*inputs: Stream) -> Stream:
            env = inputs[0]._env
            for name, stream in zip(schemas, inputs, strict=True):
                changes = stream.as_changelog(key=self._keys[name]) if name in self._keys else stream
                env.create_view(name, changes, time=time.get(name))
            return env.sql(query).to_changelog()

        super().__init__(build, schemas, parallelism=parallelism, state_backend=state_backend)

    def push(self, row: Any, at: int | None = None, *, to: str | None = None, kind: str = "+I") -> None:
        """Give one row to the only table or the named one; of a table with a key, `kind` says what the row does."""
        self.push_all([row], [at], to=to, kinds=[kind])

    def push_all(
        self,
        rows: Sequence[Any],
        at: Sequence[int | None] | None = None,
        *,
        to: str | None = None,
        kinds: Sequence[str] | None = None,
    ) -> None:
        """Give several rows in one epoch. Event time is that of the table's time column."""
        name = self._named(to)
        kinds = ["+I"] * len(rows) if kinds is None else kinds
        for kind in kinds:
            if kind not in _KINDS or (kind != "+I" and name not in self._keys):
                raise ValueError(
                    f"a row of {name!r} is {'one of ' + ', '.join(_KINDS) if name in self._keys else '+I'}"
                )
        if name in self._keys:
            rows = [_told(row, kind) for row, kind in zip(rows, kinds, strict=True)]
        super().push_all(rows, at, to=name)

    def take(self, tag: Any = None) -> list[Any]:
        """The rows given since the last call; each has a `row_kind` and a `timestamp`."""
        rows = super().take(tag)
        for row in rows:
            if ROW_KIND not in row._fields:
                row.row_kind = "+I"
        return rows

    def _with_kind(self, name: str, schema: Schema) -> Schema:
        return Schema(schema.arrow.append(ROW_KIND_FIELD)) if name in self._keys else schema


def _told(row: Any, kind: str) -> Any:
    return {**row, ROW_KIND: kind} if isinstance(row, Mapping) else (*row, kind)
