"""Partition folders as Hive names them, `day=2024-01-01/country=FR/`, so that readers know the columns from the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.errors import NotWritable
from headwater.data.schema import Schema
from headwater.errors import GraphError

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(0x20)}
"""The characters that Spark and Hive write as `%` and two digits."""
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null, and of empty text, which a path cannot show."""

_MOST_BYTES = 255
"""What file systems take as a name."""


class Partitions:
    """The columns that make the folders; they are in the path and not in the files."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)

    def check(self, step: str, schema: Schema) -> None:
        """Refuse columns whose values are no names, and files that would be left without a column."""
        for name in self.columns:
            dtype = schema.field(name).type
            if not any(
                one(dtype) for one in (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)
            ):
                raise GraphError.bad_argument(
                    step,
                    f"cannot name folders after {name!r}",
                    str(dtype),
                    "use text, whole numbers, booleans or dates",
                )
        if len(set(self.columns)) != len(self.columns) or set(schema.names) <= set(self.columns):
            raise GraphError.bad_argument(
                step,
                "partitions by some of its columns, each once",
                self.columns,
                f"choose from {', '.join(schema.names)}",
            )

    def deal(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each folder, in their order, by the names of folders; without columns, all in one."""
        if not self.columns:
            yield "", table
            return
        place, folders = np.zeros(len(table), np.int64), [""]
        for name in self.columns:
            codes, names = _coded(name, table.column(name))
            folders = [f"{above}{one}/" for above in folders for one in names]
            place = place * len(names) + codes
        rest, order = table.drop_columns(self.columns), np.argsort(place, kind="stable")
        ends = np.flatnonzero(np.diff(place[order])) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(table)], strict=True):
            yield folders[place[order[start]]], rest.take(pa.array(order[start:end]))


def _coded(name: str, column: pa.ChunkedArray) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """For each row the number of its folder, and the folders; two values with one name are in one."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    named = [folder_of(name, value) for value in encoded.dictionary.to_pylist()]
    names = sorted(set(named))
    numbers = np.array([names.index(one) for one in named], np.int64)
    return numbers[pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)], names


def folder_of(name: str, value: object) -> str:
    """The folder of a value.

    >>> folder_of("at", "10:30"), folder_of("ok", True), folder_of("k", None)
    ('at=10%3A30', 'ok=true', 'k=__HIVE_DEFAULT_PARTITION__')
    """
    text = str(value).lower() if isinstance(value, bool) else str(value)
    folder = f"{_escaped(name)}={_NOTHING if value is None or text == '' else _escaped(text)}"
    if (size := len(folder.encode())) > _MOST_BYTES:
        raise NotWritable.no_folder(
            name, value, f"the folder's name would have {size} bytes, and {_MOST_BYTES} is the most"
        )
    return folder


def _escaped(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)
