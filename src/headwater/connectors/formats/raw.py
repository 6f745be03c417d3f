"""The value itself, as the only column."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.formats.contract import Format, Undecodable
from headwater.data.schema import type_ddl
from headwater.errors import GraphError


class RawFormat(Format):
    """Bytes as they are, or as UTF-8 text."""

    name = "raw"

    def check(self, schema: pa.Schema, step: str) -> None:
        if len(schema) != 1 or schema.types[0] not in (pa.string(), pa.binary()):
            columns = ", ".join(f"{field.name} {field.type}" for field in schema)
            raise GraphError.bad_argument(
                step,
                "with format='raw' puts the value into one column, a string or binary",
                columns,
                "leave one such column beside those of metadata=",
            )

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        return pa.Table.from_arrays([text_or_bytes(values, schema.types[0])], schema=schema)

    def value_columns(self, schema: pa.Schema, apart: Collection[str], step: str) -> list[str]:
        rest = [field for field in schema if field.name not in apart]
        if len(rest) != 1 or rest[0].type not in (pa.string(), pa.binary()):
            raise GraphError.bad_argument(
                step,
                "with format='raw' writes one column, a string or binary, beside those of key and headers",
                ", ".join(f"{field.name} {type_ddl(field.type)}" for field in rest),
                "select them so",
            )
        return [rest[0].name]

    def encode(self, table: pa.Table) -> Sequence[bytes | None]:
        return pc.cast(table.column(0), pa.binary()).to_pylist()  # type: ignore[no-any-return]


def text_or_bytes(values: Sequence[bytes | None], dtype: pa.DataType) -> pa.Array:
    """Values as a column of bytes or, if they are UTF-8, of text."""
    found = pa.array(values, pa.binary())
    try:
        return found.cast(dtype)
    except pa.ArrowInvalid:
        raise Undecodable("it is not UTF-8 text") from None
