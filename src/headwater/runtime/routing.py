"""Routing: which subtask a row goes to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.batch import Batch
from headwater.graph.nodes import Exchange, Key
from headwater.operators.stateless import rows_of
from headwater.operators.user_code import user_code_failed
from headwater.rows import encode
from headwater.schema import Schema
from headwater.state.keys import key_groups, subtasks_of


def with_key(batch: Batch, key: Key, schema: Schema, step: str) -> Batch:
    """The batch with its key computed, when the key is a function's result."""
    if key.function is None:
        return batch
    try:
        keys = [key.function(row) for row in rows_of(batch.table, schema.row)]
    except Exception as error:
        raise user_code_failed(error, step) from None
    return Batch(batch.table, batch.timestamps, encode(keys, pa.field("key", key.type), step))


def route(batch: Batch, exchange: Exchange, groups: int, parallelism: int, first: int) -> Iterator[tuple[int, Batch]]:
    """The parts of a batch by subtask; `first` is where an even distribution goes on."""
    if exchange.kind == "broadcast":
        yield from ((subtask, batch) for subtask in range(parallelism))
    elif exchange.kind == "global" or parallelism == 1:
        yield 0, batch
    elif exchange.key is not None:
        keys = _key_column(exchange.key, batch)
        yield from _split(batch, subtasks_of(key_groups(keys, groups), groups, parallelism), parallelism)
    else:
        yield from _split(batch, (np.arange(len(batch), dtype=np.int64) + first) % parallelism, parallelism)


def _split(batch: Batch, subtasks: npt.NDArray[np.int64], parallelism: int) -> Iterator[tuple[int, Batch]]:
    order = np.argsort(subtasks.astype(np.int16), kind="stable")
    bounds = np.searchsorted(subtasks[order], np.arange(parallelism + 1))
    ordered = batch.take(order)
    for subtask in range(parallelism):
        count = int(bounds[subtask + 1] - bounds[subtask])
        if count:
            yield subtask, ordered.slice(int(bounds[subtask]), count)


def _key_column(key: Key, batch: Batch) -> pa.Array | pa.ChunkedArray:
    if batch.key is not None:
        return batch.key
    if len(key.columns) == 1:
        return batch.table.column(key.columns[0])
    table = batch.table.select(list(key.columns)).combine_chunks()
    return table.to_struct_array()
