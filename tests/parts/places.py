"""Epochs of one subtask, run by hand over a changelog in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import pytest

from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan
from headwater.state import changelog, slices
from headwater.state.changelog import Head, MemoryRecordStore, append, catch_up
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

Row = TypeVar("Row", bound=tuple[Any, ...])
Turn = tuple[list[Row], int]
"""The rows of an epoch, and the watermark behind them."""


def batch_of(rows: Sequence[Any], schema: Schema, times: Iterable[int | None]) -> Batch:
    return Batch(encode_rows(rows, schema.arrow, "rows"), timestamp_array(list(times)))


def run_epoch(
    host: LevelHost,
    plan: JobPlan,
    store: MemoryRecordStore,
    number: int,
    *batches: Batch,
    now_ms: int = 0,
    watermark_ms: int = 0,
) -> Outcome:
    """An epoch of level 1 on the only subtask, with the rows of each source."""
    head = catch_up(host, store, "here")
    host.token = None
    payloads = []
    for source, batch in zip(plan.sources(), batches, strict=True):
        outlet = Outlet.behind(plan, source)
        outlet.begin(EpochFacts(number, now_ms), f"{plan.graph.uid(source)}/0")
        outlet.emit(None, batch)
        payloads += [data for _, data in outlet.finish(watermark_ms)]
    outcome = host.run(payloads)
    append(host, store, head, f"token {number}")
    return outcome


def head_of(store: MemoryRecordStore) -> Head:
    head = store.head()
    assert head is not None
    return head


def sunk(outcome: Outcome) -> list[Any]:
    """The rows for sinks, in order."""
    return [row for batches in outcome.sink_batches.values() for batch in batches for row in batch.table.to_pylist()]


def check_versions(
    plans: Mapping[str, JobPlan],
    backend: str,
    epoch: Callable[[LevelHost, MemoryRecordStore, list[Row], int], list[Any]],
    turns: list[Turn[Row]],
    forms: list[int],
    *,
    last_rows: list[Row],
) -> None:
    """Of every version a copy is rebuilt that has the same, and gives the same of the last rows when time has passed.

    Each epoch writes parts of a base, cut in one of the forms. Copies are on a backend, or behind, or come of a whole base.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_PART_ENTRIES", 2)
        patch.setattr(changelog, "COMPACT_FACTOR", 0)
        patch.setattr(changelog, "COMPACT_FROM_BYTES", 0)
        patch.setattr(changelog, "FIRST_RECORD_BYTES", 1)
        store, watermark = MemoryRecordStore(), 0
        with closing(LevelHost(plans["memory"], 1, 0)) as host, closing(LevelHost(plans[backend], 1, 0)) as behind:
            for number, (rows, until) in enumerate(turns):
                patch.setattr(changelog, "FORM", forms[number])
                watermark = max(watermark, until)
                epoch(host, store, rows, watermark)
                if number % 3 == 1:
                    catch_up(behind, store, "here")
                with closing(LevelHost(plans[backend], 1, 0)) as rebuilt:
                    catch_up(rebuilt, store, "here")
                    assert rebuilt.base() == host.base()
                    given = epoch(rebuilt, store.copy(), last_rows, 200)
                with closing(LevelHost(plans["memory"], 1, 0)) as other:
                    other.apply(host.base())
                    other.sequence, other.token = host.sequence, host.token
                    assert epoch(other, store.copy(), last_rows, 200) == given
            catch_up(behind, store, "here")
            assert epoch(behind, store.copy(), last_rows, 200) == given
