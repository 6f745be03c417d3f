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
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parts.nexmark import headwater_side
from parts.nexmark.events import BIDS, OF_ALL
from parts.nexmark.files import EventFiles
from parts.nexmark.flink import Flink
from parts.nexmark.texts import QUERIES

from headwater.spark.session import local_session

Row = tuple[str | None, ...]
DIFFERENT = "DIFFERENT"
BY_THE_CLOCK = ("q12",)
"""Its windows are of processing time, and differ in any two runs. A window that is open at the end is not given."""


TIES = {"q18": (0, 1, 5), "q19": (0, 2, 7)}
"""Queries that choose among bids with the same time, or the same price, by which came first, and the columns in which such
bids are the same. Bids of different splits come in any order, in Flink too."""


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


def compared(query: str, flink: Flink, files: EventFiles) -> str:
    """Whether both sides come to the same table."""
    ours: Mapping[Row, int] = headwater_side.rows(QUERIES[query], files)
    theirs: Mapping[Row, int] = flink.rows(QUERIES[query], files)
    if query in BY_THE_CLOCK:
        bids = files.events * BIDS // OF_ALL + BIDS
        is_fit = all(sum(int(row[1] or 0) for row in table) <= bids for table in (ours, theirs))
        return "by the clock: no bid counted twice" if is_fit else DIFFERENT
    if query in TIES:
        ours, theirs = _of_columns(ours, TIES[query]), _of_columns(theirs, TIES[query])
    says = "equal but for ties" if query in TIES else "equal"
    return f"{says}, {sum(ours.values()):,} rows" if ours == theirs else DIFFERENT


def _of_columns(table: Mapping[Row, int], columns: tuple[int, ...]) -> Counter[Row]:
    counts: Counter[Row] = Counter()
    for row, count in table.items():
        counts[tuple(row[at] for at in columns)] += count
    return counts


def measured(query: str, flink: Flink, files: EventFiles, runs: int, tables: str) -> Measured:
    """The best of some runs of each side, which take turns."""
    ours, theirs = [], []
    job_dir = files.folder / "job"
    for _ in range(runs):
        moments = headwater_side.timed(QUERIES[query], files, job_dir)
        ours.append(moments.seconds)
        checkpoint_ms = int(moments.seconds * 1000 / files.epochs)
        theirs.append(flink.seconds(QUERIES[query], files, checkpoint_ms))
        shutil.rmtree(job_dir)
    return Measured(query, tables, files.events / min(ours), files.events / min(theirs))


def main() -> None:
    """Compare and measure the queries, and print a table and the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("queries", nargs="*", choices=[*QUERIES, []], default=[])
    options.add_argument("--events", type=int, default=1_200_000)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--compared", type=int, default=100_000, help="the events over which results are compared")
    options.add_argument("--runs", type=int, default=1)
    args = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-nexmark-"))
    try:
        few = EventFiles(folder / "few", args.compared, 4)
        all_events = EventFiles(folder / "all", args.events, args.epochs)
        few.write()
        all_events.write()
        local_session(2, {})
        print(f"{args.events:,} events in {args.epochs} epochs; load average", os.getloadavg())
        print(f"{'query':<5} {'headwater':>14} {'flink':>14} {'ratio':>7}  tables of {args.compared:,} events")
        found = []
        queries = args.queries or list(QUERIES)
        with Flink(folder) as flink:
            measured(queries[0], flink, all_events, 1, "")  # both have then compiled what all queries need
            for query in queries:
                tables = compared(query, flink, few)
                found.append(measured(query, flink, all_events, args.runs, tables))
                print(found[-1], flush=True)
        print("load average", os.getloadavg())
        result = {
            "bench": "nexmark",
            "headwater": round(statistics.median(one.headwater for one in found), 1),
            "flink": round(statistics.median(one.flink for one in found), 1),
            "faster": sum(one.ratio > 1 for one in found),
            "queries": len(found),
            "ratio": round(statistics.median(one.ratio for one in found), 2),
        }
        print(json.dumps(result))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if any(one.tables == DIFFERENT for one in found):
        raise SystemExit("the tables of some queries differ from Flink's")


if __name__ == "__main__":
    main()
