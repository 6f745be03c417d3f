"""The events as JSON lines, as Nexmark's project puts them into Kafka."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb

from parts.nexmark.events import AUCTIONS, BIDS, OF_ALL, PERSONS, Events

SPLITS = 2
SIDE_KEYS = 10_000

_LINES = f"""
SELECT n, 0 AS event_type, p AS person, NULL AS auction, NULL AS bid
FROM (SELECT (row_number() OVER () - 1) * {OF_ALL} AS n, p FROM person AS p)
UNION ALL BY NAME
SELECT n, 1 AS event_type, a AS auction
FROM (SELECT row_number() OVER () - 1 AS i, i // {AUCTIONS} * {OF_ALL} + {PERSONS} + i % {AUCTIONS} AS n, a
      FROM auction AS a)
UNION ALL BY NAME
SELECT n, 2 AS event_type, b AS bid
FROM (SELECT row_number() OVER () - 1 AS i, i // {BIDS} * {OF_ALL} + {PERSONS + AUCTIONS} + i % {BIDS} AS n, b
      FROM bid AS b)
"""  # noqa: S608  numbers of ours
"""Events with their number, of which one of the columns is not null."""


@dataclass(frozen=True)
class EventFiles:
    """The same lines twice: in `ours` a file for each split and epoch, in `theirs` a file for each split.

    Headwater reads whole files, so that they say where epochs end. Flink reads its files from start to end, each with a
    watermark of its own, so that no row is late on either side.
    """

    folder: Path
    events: int
    epochs: int

    @property
    def ours(self) -> Path:
        return self.folder / "ours"

    @property
    def theirs(self) -> Path:
        return self.folder / "theirs"

    @property
    def side_input(self) -> Path:
        """The folder of the table that query 13 looks keys up in."""
        return self.folder / "side"

    def write(self) -> None:
        """Make the events and write them. Of the two splits one has the even events, the other the odd ones."""
        made = Events(self.events)
        database = duckdb.connect()
        for name in ("person", "auction", "bid"):
            database.register(name, getattr(made, name))
        database.execute(f"CREATE TABLE lines AS {_LINES}")
        size = -(-self.events // self.epochs)
        for folder in (self.ours, self.theirs, self.side_input):
            folder.mkdir(parents=True)
        pairs = (json.dumps({"key": key, "value": f"value-{key}"}) for key in range(SIDE_KEYS))
        (self.side_input / "side_input.json").write_text("\n".join(pairs))
        for epoch in range(self.epochs):
            for split in range(SPLITS):
                path = self.ours / f"part-{epoch:04d}-{split}.json"
                is_here = f"n // {size} = {epoch} AND n % {SPLITS} = {split}"
                lines = f"SELECT * EXCLUDE (n) FROM lines WHERE {is_here} ORDER BY n"  # noqa: S608  numbers of ours
                database.execute(f"COPY ({lines}) TO '{path}' (FORMAT json)")
                with path.open("rb") as one, (self.theirs / f"part-{split}.json").open("ab") as whole:
                    shutil.copyfileobj(one, whole)
        database.close()
