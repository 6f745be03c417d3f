"""A savepoint as a mapping from steps and states to tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.clock.watermark import Valve
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.moments import moment_text
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import SavedFile, Savepoint, entries_of, shown
from headwater.savepoints.fitting import CHANNELS


class SavedState:
    """One state of one step in a savepoint: a table with a row for each entry."""

    def __init__(self, savepoint: Savepoint, step: str, name: str) -> None:
        self.step, self.name = step, name
        self._savepoint = savepoint
        self._files: list[SavedFile] = savepoint.description.steps[step].states[name]

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return sum(file.rows for file in self._files)

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(file.size_bytes for file in self._files)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        file = self._files[0]
        return shown(self._savepoint.read_schema(file).empty_table(), file.key).schema

    def to_arrow(self) -> pa.Table:
        """All entries, checked against their checksums."""
        tables = [shown(self._savepoint.read(file), file.key) for file in self._files]
        try:
            return pa.concat_tables(tables)
        except pa.ArrowException as error:
            raise SavepointError.corrupt(self._savepoint.of(self._files[0]), str(error)) from None

    def to_pandas(self) -> Any:
        """All entries as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any) -> Any:
        """All entries as a DataFrame of the given session, which reads the files itself."""
        frame = spark.read.parquet(*(f"file://{self._savepoint.of(file)}" for file in self._files))
        return frame.select(*(frame[f"`{name}`"] for name in self.schema.names))

    def __repr__(self) -> str:
        return f"<saved state {self.step}/{self.name}: {self.rows} rows>"


class SavedJob:
    """A savepoint: the states by step and name, and where the job stood."""

    def __init__(self, savepoint: Savepoint) -> None:
        known = savepoint.description
        self.path: Path = savepoint.path
        self.job, self.epoch = known.job, known.epoch
        self.parallelism, self.key_groups = known.parallelism, known.key_groups
        self.positions = {uid: dict(splits) for uid, splits in known.offset.positions.items()}
        """By source and split, the position of the next row to read."""
        self.has_ended = known.offset.end
        """Whether the input had ended, so that event time is at its end."""
        self._savepoint = savepoint

    @property
    def watermarks(self) -> dict[str, int | None]:
        """By step, where its event time stands in ms, on its slowest subtask; None where it has not begun."""
        found = {}
        for uid, step in self._savepoint.description.steps.items():
            valves = [self._valve(file) for file in step.states.get(CHANNELS, ())]
            lowest = min((valve.watermark() for valve in valves), default=MIN_TIMESTAMP)
            found[uid] = None if lowest == MIN_TIMESTAMP else lowest
        return found

    def _valve(self, file: SavedFile) -> Valve:
        valve = Valve()
        try:
            valve.apply(entries_of(self._savepoint.read(file)))
        except (LookupError, TypeError, ValueError, pa.ArrowException) as error:
            raise SavepointError.corrupt(self._savepoint.of(file), f"it holds no channels: {error}") from None
        return valve

    def __getitem__(self, state: tuple[str, str]) -> SavedState:
        if state not in list(self):
            step, name = state
            raise SavepointError.no_state(f"the savepoint {self.path}", step, name, ["/".join(one) for one in self])
        return SavedState(self._savepoint, *state)

    def __contains__(self, state: object) -> bool:
        return state in list(self)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for uid, step in self._savepoint.description.steps.items():
            yield from ((uid, name) for name in sorted(step.states) if not name.startswith(CHANNELS))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def describe(self) -> str:
        """What the savepoint holds, as text; states of the library's own that are empty are left out."""
        ended = ", its input had ended" if self.has_ended else ""
        lines = [
            f"savepoint {self.path}",
            f"job {self.job}, epoch {self.epoch}, parallelism {self.parallelism}, {self.key_groups} key groups{ended}",
        ]
        for uid, splits in self.positions.items():
            lines.append(f"source {uid}: " + (", ".join(f"{split} at {at}" for split, at in splits.items()) or "-"))
        for uid, watermark_ms in self.watermarks.items():
            lines.append(f"step {uid}: event time {_shown_time(watermark_ms)}")
            states = [self[place] for place in self if place[0] == uid]
            lines += [
                f"  {state.name}: {state.rows} rows, {state.size_bytes} bytes"
                for state in states
                if state.rows or not state.name.startswith("@")
            ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<savepoint {self.path} of job {self.job}, epoch {self.epoch}>"


def read(path: str | os.PathLike[str]) -> SavedJob:
    """Open a savepoint to look into it."""
    return SavedJob(Savepoint.open(Path(path)))


def _shown_time(watermark_ms: int | None) -> str:
    if watermark_ms is None:
        return "not begun"
    return "at its end" if watermark_ms == MAX_TIMESTAMP else moment_text(watermark_ms)
