"""Headwater's side of Nexmark: queries over files, on Spark."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from parts.nexmark.files import SPLITS, EventFiles
from parts.nexmark.texts import TABLES

_TAKEN_BACK = ("-U", "-D")


def count_char(texts: pa.Array, letters: pa.Array) -> pa.Array:
    """The function that query 14 calls: how often a letter is in a text."""
    counts = [(letter, pc.count_substring(texts, letter)) for letter in pc.unique(letters).to_pylist()]
    found = counts[0][1] if counts else pa.array([], pa.int32())
    for letter, these in counts[1:]:
        found = pc.if_else(pc.equal(letters, letter), these, found)
    return found.cast(pa.int64())


@dataclass
class Moments:
    """When epochs began and were done; pass it as `on_step`."""

    begun: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            self.begun.append(time.perf_counter())
        elif step is hw.EpochStep.CLEANED:
            self.done.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        """From the start of the first epoch until all is published."""
        return self.done[-1] - self.begun[0]


def environment(files: EventFiles, job_dir: Path | None) -> hw.Environment:
    """An environment with the tables of Nexmark over files, of which an epoch reads one of each split."""
    env = hw.Environment("nexmark", job_dir=job_dir, parallelism=2)
    connector = (
        f"'connector' = 'files', 'path' = '{files.ours}', 'format' = 'json', 'source.splits' = '{SPLITS}', "
        f"'source.max-files-per-epoch' = '{SPLITS}', 'source.settle' = '0 s'"
    )
    side_input = f"'connector' = 'files', 'path' = '{files.side_input}', 'format' = 'json', 'source.settle' = '0 s'"
    env.run_sql(TABLES.replace("{connector}", connector).replace("{side_input}", side_input))
    env.create_function("count_char", count_char, arguments=["string"] * 2, returns="bigint", takes_arrow=True)
    return env


def rows(text: str, files: EventFiles) -> Counter[tuple[str | None, ...]]:
    """The table that a query comes to: each row, as texts, and how often it is there."""
    counts: Counter[tuple[str | None, ...]] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = environment(files, None).sql(text).collect()
    for row in found:
        kind = getattr(row, "row_kind", None)
        counts[tuple(map(_text, row[:-1] if kind else row))] += -1 if kind in _TAKEN_BACK else 1
    return Counter({values: count for values, count in counts.items() if count})


def texts(table: pa.Table) -> Counter[tuple[str | None, ...]]:
    """The rows of a table, as texts, and how often each is there."""
    columns = [map(_text, column.to_pylist()) for column in table.columns]
    return Counter(zip(*columns, strict=True))


def timed(text: str, files: EventFiles, job_dir: Path) -> Moments:
    """When the epochs of a query begin and are done, all of whose rows go nowhere."""
    moments = Moments()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        env = environment(files, job_dir)
        env.sql(text).sink(hw.connectors.blackhole())
        env.run(on_step=moments, progress=False)
    return moments


def _text(value: Any) -> str | None:
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return str((aware - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(milliseconds=1))
    if isinstance(value, Decimal):
        return f"{value:f}"
    return None if value is None else str(value)
