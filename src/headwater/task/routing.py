"""Routing: which subtask a row goes to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import encode
from headwater.data.schema import Schema
from headwater.errors import UserCodeError
from headwater.graph.edges import Exchange, Key
from headwater.operators.grouping import group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.stateless.functions import rows_of
from headwater.operators.user_code import user_code_failed
from headwater.state.keys import key_groups, subtasks_of


def with_key(batch: Batch, key: Key, schema: Schema, step: str) -> Batch:
    """The batch with its key computed, when the key is a function's result."""
    if key.function is None:
        return batch
    try:
        keys = [key.function(row) for row in rows_of(batch.table, schema.row)]
    except BaseException as error:
        raise user_code_failed(error, step) from None
    return Batch(batch.table, batch.timestamps, encode(keys, pa.field("key", key.type), step), batch.kinds)


def route(
    batch: Batch, exchange: Exchange, groups: int, parallelism: int, *, turn: int, step: str
) -> Iterator[tuple[int, Batch]]:
    """The parts of a batch by subtask; `turn` is where dealing out in turn goes on, `step` is who gets the rows."""
    if exchange.kind == "broadcast":
        yield from ((subtask, batch) for subtask in range(parallelism))
    elif exchange.partitioner is not None:
        chosen = _chosen(batch, exchange, parallelism, step)
        yield from _split(Batch(batch.table, batch.timestamps, kinds=batch.kinds), chosen, parallelism)
    elif exchange.kind == "global" or parallelism == 1:
        yield 0, batch
    elif exchange.key is not None:
        keys = _key_column(exchange.key, batch)
        yield from _split(batch, subtasks_of(key_groups(keys, groups), groups, parallelism), parallelism)
    else:
        yield from _split(batch, (np.arange(len(batch), dtype=np.int64) + turn) % parallelism, parallelism)


def _chosen(batch: Batch, exchange: Exchange, parallelism: int, step: str) -> npt.NDArray[np.int64]:
    """The subtask of each row by the user's partitioner, which is asked once for each key of the batch."""
    partitioner, key_by = exchange.partitioner, exchange.key
    assert partitioner is not None
    assert key_by is not None
    groups = group(key_arrays(batch, key_by), len(batch))
    subtasks = np.empty(len(groups), np.int64)
    for place, key in enumerate(keys_of(batch.take(groups.first), key_by)):
        try:
            subtask = partitioner(key, parallelism)
        except BaseException as error:
            raise user_code_failed(error, step, key) from None
        if type(subtask) is not int or not 0 <= subtask < parallelism:
            rule = f"a partitioner must give a subtask from 0 to {parallelism - 1}"
            raise UserCodeError(step, key, None, f"{rule}; got {subtask!r}; return an int below its `parallelism`", "")
        subtasks[place] = subtask
    return subtasks[groups.codes]


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
