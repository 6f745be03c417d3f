"""Parquet files of somebody else, read in pieces that fit memory: a few bytes there can stand for any number of rows.

A page may say that a value comes a million times. So the longest value that a row group may repeat is looked up before
its rows are read, and decides how many of them are read at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_BATCH_ROWS = 65_536
_REPEATED_BYTES = 64 << 20
"""What a batch may become of a value that all of its rows repeat."""
_PROBE_BYTES = 1 << 16
"""Read at a time when only the dictionaries are wanted, and not the rows after them."""
_IN_A_LIST = 32
"""So many items a list is thought to have."""


def batches_of(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file, with those of the columns that it has.

    Of the file's metadata only its schema is asked: pyarrow ends the process when it is asked for a damaged column's.
    """
    with pq.ParquetFile(path, page_checksum_verification=True) as file:  # where there are any
        there = set(file.schema_arrow.names)
        wanted = [name for name in columns if name in there]
        leaves = [file.schema.column(at) for at in range(len(file.schema))]
        texts = [leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and _name(leaf) in wanted]
        in_a_row = _IN_A_LIST if any(leaf.max_repetition_level for leaf in texts) else 1
        found = 0
        for group in range(file.num_row_groups):
            rows = _REPEATED_BYTES // (in_a_row * _longest(path, group, texts))
            for batch in file.iter_batches(min(_BATCH_ROWS, max(1, rows)), row_groups=[group], columns=wanted):
                found += len(batch)
                yield batch
        if found != file.metadata.num_rows:
            raise ValueError(f"it has {found} rows, and says that they are {file.metadata.num_rows}")


def _name(leaf: pq.ColumnSchema) -> str:
    """The column that a leaf is a part of."""
    return str(leaf.path.partition(".")[0])


def _longest(path: Path, group: int, texts: Sequence[pq.ColumnSchema]) -> int:
    """The most bytes of a value in the dictionaries of a row group, which its rows may repeat."""
    if not texts:
        return 1
    names = sorted({_name(leaf) for leaf in texts})
    paths = [leaf.path for leaf in texts]
    with pq.ParquetFile(path, read_dictionary=paths, pre_buffer=False, buffer_size=_PROBE_BYTES) as file:
        first = next(file.iter_batches(1, row_groups=[group], columns=names, use_threads=False), None)
    dictionaries = [] if first is None else [one for column in first.columns for one in _dictionaries(column)]
    lengths = [pc.max(pc.binary_length(one)).as_py() for one in dictionaries if len(one)]
    return max((length for length in lengths if length), default=1)


def _dictionaries(column: pa.Array) -> Iterator[pa.Array]:
    dtype = column.type
    if pa.types.is_dictionary(dtype):
        yield column.dictionary
    elif pa.types.is_struct(dtype):
        for at in range(dtype.num_fields):
            yield from _dictionaries(column.field(at))
    elif pa.types.is_map(dtype):
        yield from _dictionaries(column.keys)
        yield from _dictionaries(column.items)
    elif pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        yield from _dictionaries(column.values)
