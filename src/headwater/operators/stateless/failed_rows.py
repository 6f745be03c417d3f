"""Rows whose function fails: they fail the job, or go to a side output together with the error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch, timestamp_list
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.errors import RowError
from headwater.functions import OutputTag
from headwater.operators.user_code import user_code_failed

Places = Sequence[int] | npt.NDArray[np.int64]


class FailedRows:
    """Those of one batch, by their place in it. Without a tag the first one fails the job."""

    def __init__(self, batch: Batch, tag: OutputTag | None, step: str) -> None:
        self._batch, self._tag, self._step = batch, tag, step
        self._errors: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._errors)

    def add(self, place: int, error: BaseException) -> None:
        """Note a row and what its function has raised."""
        timestamp = timestamp_list(self._batch.timestamps[place : place + 1])[0]
        failure = user_code_failed(error, self._step, timestamp=timestamp)
        if self._tag is None:
            raise failure from None
        self._errors[place] = failure.cause

    def others(self) -> npt.NDArray[np.int64]:
        """The places of the rows that have not failed."""
        return np.delete(np.arange(len(self._batch)), list(self._errors))

    def results(self, rows: Sequence[Any], places: Places, schema: Schema) -> Batch:
        """Result rows as a batch, each with the time and the kind of the row that it is of.

        A row one of whose results does not fit the schema has failed too, and gives none.
        """
        try:
            return self._batch.results(encode_rows(rows, schema.arrow, self._step), places)
        except RowError:
            if self._tag is None:
                raise
        for place, row in zip(places, rows, strict=True):
            try:
                encode_rows([row], schema.arrow, self._step)
            except RowError as error:
                self._errors.setdefault(int(place), str(error))
        good = [at for at, place in enumerate(places) if place not in self._errors]
        table = encode_rows([rows[at] for at in good], schema.arrow, self._step)
        return self._batch.results(table, np.asarray(places, np.int64)[good])

    def __contains__(self, place: int) -> bool:
        return place in self._errors

    def output(self) -> Iterator[tuple[str | None, Batch]]:
        """The failed rows with their errors, for the side output."""
        if self._tag is None or not self._errors:
            return
        places = np.array(sorted(self._errors), np.int64)
        errors = pa.array([self._errors[place] for place in places.tolist()], pa.string())
        rows = self._batch.take(places)
        table = pa.Table.from_arrays([*rows.table.columns, errors], schema=self._tag.schema.arrow)
        yield self._tag.name, Batch(table, rows.timestamps)
