"""What a format must be able to do, and how the bad records of a batch are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from headwater.data.schema import type_ddl
from headwater.data.sound import fault_in
from headwater.errors import GraphError

Record = TypeVar("Record")


class Undecodable(Exception):
    """At least one of some values cannot be read; says why, which counts when it is the only one."""


class Format(ABC):
    """Turns values into rows, and rows into values. What a value becomes depends on itself alone, never on those beside it."""

    name: str
    """What users call it."""

    @abstractmethod
    def check(self, schema: pa.Schema, step: str) -> None:
        """Refuse, while the job is built, columns that values of this format cannot give."""

    @abstractmethod
    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        """One row of each value, in order, or `Undecodable`."""

    @abstractmethod
    def value_columns(self, schema: pa.Schema, apart: Collection[str], step: str) -> list[str]:
        """The columns that a value is written from. Refuses, before a job starts, those that cannot be written.

        `apart` are columns that are in the record elsewhere too, as its key or in headers.
        """

    @abstractmethod
    def encode(self, table: pa.Table) -> Sequence[bytes | None]:
        """One value of each row of these columns, in order."""


def sifted(
    records: Sequence[Record], decode: Callable[[Sequence[Record]], pa.RecordBatch]
) -> Iterator[pa.RecordBatch | tuple[Record, str]]:
    """Rows of all records that can be decoded and, in their places, those that cannot, each with the reason.

    A batch that fails is halved until what fails is one record, so that the same decoder decides about every record.
    """
    try:
        yield decode(records)
    except Undecodable as error:
        if len(records) == 1:
            yield records[0], str(error)
            return
        middle = len(records) // 2
        yield from sifted(records[:middle], decode)
        yield from sifted(records[middle:], decode)


def numbered_rows(
    values: Sequence[tuple[int, bytes]], of: Format, schema: pa.Schema
) -> Iterator[pa.RecordBatch | tuple[tuple[int, bytes], str]]:
    """Rows of values that have a number each and, in their places, those that cannot be decoded, with the reason."""

    def decode(some: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
        table = of.decode([value for _, value in some], schema)
        return sound(pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=schema))

    return sifted(values, decode) if values else iter(())


def sound(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; `Undecodable` if one of them has a value that no row can have."""
    if (fault := fault_in(rows)) is not None:
        raise Undecodable(str(fault))
    return rows


def refuse_types(schema: pa.Schema, is_read: Callable[[pa.DataType], bool], step: str, name: str) -> None:
    """Refuse columns whose type a format cannot read."""
    for field in schema:
        if not is_read(field.type):
            raise GraphError.bad_argument(
                step,
                f"cannot read column {field.name!r} from {name}",
                type_ddl(field.type),
                "declare another type, or read the whole value with format='raw'",
            )
