"""Nexmark: each query in Headwater's SQL on Spark and in Flink SQL, over the same events, in the same run.

Both read the same JSON lines from files and write nowhere; both have two cores, an epoch or a checkpoint as often, and
each row once. Flink has its state in RocksDB and is set as Nexmark's project sets it, mini-batches and all. Before a query
is measured, both sides run it over fewer events, which warms them up, and what its tables come to is compared. Time is
that of the job: from the start of the first epoch until the last is published, and what Flink says that its job ran.
Neither has the start of a JVM or of a session in it. Figures are events per second, of all events, also where a query
passes most of them over.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parts.nexmark import headwater_side
from parts.nexmark.comparison import DIFFERENT, compared
from parts.nexmark.events import Events
from parts.nexmark.files import EventFiles
from parts.nexmark.flink import Flink
from parts.nexmark.texts import QUERIES

from headwater.scratch import Scratch
from headwater.spark.session import local_session


@dataclass(frozen=True)
class Measured:
    """A query, in events per second on both sides, and what was found out about its tables."""

    query: str
    tables: str
    headwater: float
    flink: float

    @property
    def ratio(self) -> float:
        return self.headwater / self.flink

    def __str__(self) -> str:
        return f"{self.query:<5} {self.headwater:>14,.0f} {self.flink:>14,.0f} {self.ratio:>7.2f}  {self.tables}"


def tables_of(query: str, flink: Flink, files: EventFiles) -> str:
    """Whether both sides come to the same table, and what of it was compared."""
    bids = headwater_side.texts(Events(files.events).bid)
    return compared(query, headwater_side.rows(QUERIES[query], files), flink.rows(QUERIES[query], files), bids)


def measured(query: str, flink: Flink, files: EventFiles, runs: int, tables: str) -> Measured:
    """The best of some runs of each side, which take turns."""
    ours, theirs = [], []
    job_dir = files.folder / "job"
    for _ in range(runs):
        shutil.rmtree(job_dir, ignore_errors=True)  # of a query that failed
        moments = headwater_side.timed(QUERIES[query], files, job_dir)
        ours.append(moments.seconds)
        checkpoint_ms = int(moments.seconds * 1000 / files.epochs)
        theirs.append(flink.seconds(QUERIES[query], files, checkpoint_ms))
        shutil.rmtree(job_dir)
    return Measured(query, tables, files.events / min(ours), files.events / min(theirs))


def tried(query: str, flink: Flink, few: EventFiles, all_events: EventFiles, runs: int) -> Measured | str:
    """A query compared and measured; or why it failed, which leaves the others alone."""
    try:
        return measured(query, flink, all_events, runs, tables_of(query, flink, few))
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def summary(found: Sequence[Measured], failed: Mapping[str, str]) -> dict[str, Any]:
    """The figures of all queries that ran, and the names of those that did not."""

    def median(values: Iterable[float], digits: int) -> float | None:
        known = list(values)
        return round(statistics.median(known), digits) if known else None

    return {
        "bench": "nexmark",
        "headwater": median((one.headwater for one in found), 1),
        "flink": median((one.flink for one in found), 1),
        "faster": sum(one.ratio > 1 for one in found),
        "queries": len(found),
        "failed": list(failed),
        "ratio": median((one.ratio for one in found), 2),
    }


def main() -> None:
    """Compare and measure the queries, and print a table and the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("queries", nargs="*", choices=[*QUERIES, []], default=[])
    options.add_argument("--events", type=int, default=1_200_000)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--compared", type=int, default=100_000, help="the events over which results are compared")
    options.add_argument("--runs", type=int, default=1)
    args = options.parse_args()
    folder = Scratch("bench-nexmark").path
    few = EventFiles(folder / "few", args.compared, 4)
    all_events = EventFiles(folder / "all", args.events, args.epochs)
    few.write()
    all_events.write()
    local_session(2, {})
    print(f"{args.events:,} events in {args.epochs} epochs; load average", os.getloadavg())
    print(f"{'query':<5} {'headwater':>14} {'flink':>14} {'ratio':>7}  tables of {args.compared:,} events")
    found: list[Measured] = []
    failed: dict[str, str] = {}
    queries = args.queries or list(QUERIES)
    with Flink(folder) as flink:
        tried(queries[0], flink, few, all_events, 1)  # both have then compiled what all queries need
        for query in queries:
            one = tried(query, flink, few, all_events, args.runs)
            if isinstance(one, Measured):
                found.append(one)
            else:
                failed[query] = one
            print(one if isinstance(one, Measured) else f"{query:<5} failed: {one}", flush=True)
    print("load average", os.getloadavg())
    print(json.dumps(summary(found, failed)))
    wrong = [one.query for one in found if one.tables.startswith(DIFFERENT)]
    if failed or wrong:
        raise SystemExit(
            f"queries that failed: {', '.join(failed) or 'none'}; with other tables: {', '.join(wrong) or 'none'}"
        )


if __name__ == "__main__":
    main()
