"""Avro: each value one record, written with a schema that the job knows."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.connectors.formats.avro_schema import SAFE_DECIMAL, refuse_unsafe, safe_decimal, with_safe_decimals
from headwater.connectors.formats.contract import Format, Undecodable
from headwater.errors import GraphError, JobError, RowError

_FRAME = 5
"""A schema registry's framing: a zero, and four bytes of the schema's number."""
_PIECE_BYTES = 1 << 20
"""Of records that are decoded at a time: a byte can become hundreds as an object of Python."""


class AvroFormat(Format):
    """Reads records one by one with fastavro, and takes columns by the names of their fields."""

    name = "avro"

    def __init__(self, schema: str | dict[str, Any], *, framed: bool = False) -> None:
        parse_schema = _fastavro().schema.parse_schema
        try:
            given = json.loads(schema) if isinstance(schema, str) else schema
            self._schema = parse_schema(given)
            self._fields = [field["name"] for field in self._schema["fields"]]
            refuse_unsafe(self._schema)
            self._read_as = parse_schema(with_safe_decimals(given))
        except Exception as error:
            raise GraphError.bad_argument(
                "avro", f"needs the Avro schema of a record, as JSON ({error})", schema, "give the writer's schema"
            ) from None
        self._framed = framed

    def check(self, schema: pa.Schema, step: str) -> None:
        for name in schema.names:
            if name not in self._fields:
                raise GraphError.bad_argument(
                    step,
                    "takes columns from the fields of the Avro record",
                    name,
                    f"choose from {', '.join(self._fields)}, or name what it is in metadata=",
                )

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        return pa.concat_tables([self._decoded(piece, schema) for piece in _pieces(values)])

    def _decoded(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        rows = [self._record(value) for value in values]
        columns = [_column([row[field.name] for row in rows], field) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def value_columns(self, schema: pa.Schema, apart: Collection[str], step: str) -> list[str]:
        if self._framed:
            raise GraphError.bad_argument(
                step, "cannot write framed Avro: it knows no schema registry", "framed=True", "leave framed out"
            )
        for field in self._schema["fields"]:
            if field["name"] not in schema.names and "default" not in field:
                raise GraphError.bad_argument(
                    step,
                    f"needs a column for the field {field['name']!r} of the Avro record, which has no default",
                    ", ".join(schema.names),
                    "add it, or give the field a default",
                )
        for name in schema.names:
            if name not in self._fields and name not in apart:
                raise GraphError.bad_argument(
                    step,
                    "writes columns that the Avro record has fields for",
                    name,
                    f"leave it out, or add it to {', '.join(self._fields)}",
                )
        return [name for name in schema.names if name in self._fields]

    def encode(self, table: pa.Table) -> Sequence[bytes]:
        return list(map(self._written, table.to_pylist(maps_as_pydicts="strict")))

    def _written(self, row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        try:
            _fastavro().schemaless_writer(out, self._schema, row)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise RowError.value_does_not_fit("avro", "value", row, "the Avro schema", reason) from None
        return out.getvalue()

    def _record(self, value: bytes) -> dict[str, Any]:
        source = io.BytesIO(value)
        if self._framed:
            if len(value) < _FRAME or value[0] != 0:
                raise Undecodable("it does not have the framing of a schema registry")
            source.seek(_FRAME)
        try:
            record: dict[str, Any] = _fastavro().schemaless_reader(source, self._read_as, None)
        except Exception as error:
            raise Undecodable(f"it is not a record of the Avro schema: {str(error) or type(error).__name__}") from None
        if source.tell() != len(value):
            raise Undecodable(f"{len(value) - source.tell()} bytes are left after the record")
        return record


def _pieces(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Values that are objects of Python at the same time."""
    start, size_bytes = 0, 0
    for at, value in enumerate(values):
        size_bytes += len(value)
        if size_bytes >= _PIECE_BYTES:
            yield values[start : at + 1]
            start, size_bytes = at + 1, 0
    if start < len(values) or not values:
        yield values[start:]


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Undecodable(f"field {field.name!r}: {error}") from None


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise JobError.not_supported(
            "hw.connectors.avro needs the package fastavro", "pip install 'headwater[avro]'"
        ) from None
    fastavro.read.LOGICAL_READERS[f"bytes-{SAFE_DECIMAL}"] = safe_decimal
    return fastavro
