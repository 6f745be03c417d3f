"""The rules of the `Sink` contract, as the life of an output: epochs, one twice, a crash, a savepoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Guarantee, Sink, Staged
from headwater.data.rows import decode, encode_rows, make_rows, row_class
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import PublishError
from headwater.testing.conformance.verdict import as_shipped, check_words, require

_UID, _JOB, _NEXT_JOB = "conformance", "a" * 32, "b" * 32
_EPOCHS = (2, 0, 1, 1)
"""How many files each epoch has; one has none."""

Rows = list[tuple[Any, ...]]


def check_sink(
    make: Callable[[], Sink],
    schema: SchemaLike,
    rows: Sequence[Any],
    read_back: Callable[[], Sequence[Any]],
    folder: Path,
    *,
    ordered: bool = True,
    secrets: Sequence[str] = (),
) -> None:
    """Check a sink whose output is empty at first.

    `make` gives the sink anew, as a new process would have it; `rows`, at least four and all different, are what is
    published; `read_back` gives the rows that a reader finds, as tuples, in order unless `ordered=False`. Files are
    staged below `folder`. Raises `NotConforming` at the first rule it breaks.
    """
    _Life(make, Schema.of(schema), list(rows), read_back, folder, ordered=ordered, secrets=secrets).live()


class _Life:
    """What happens to an output, one thing after the other."""

    def __init__(
        self,
        make: Callable[[], Sink],
        schema: Schema,
        rows: list[Any],
        read_back: Callable[[], Sequence[Any]],
        folder: Path,
        *,
        ordered: bool,
        secrets: Sequence[str],
    ) -> None:
        if len(rows) < sum(_EPOCHS):
            raise ValueError(f"give at least {sum(_EPOCHS)} rows to check a sink with; got {len(rows)}")
        self._make, self._schema, self._folder = make, schema, folder
        self._read_back, self._ordered, self._secrets = read_back, ordered, secrets
        table = encode_rows(rows, schema.arrow, "conformance")
        self._tables = [table.slice(i, 1) for i in range(sum(_EPOCHS) - 1)] + [table.slice(sum(_EPOCHS) - 1)]
        self._sink = make()
        self._expected: Rows = []

    def live(self) -> None:
        check_words(self._sink, self._secrets)
        self._sink.open(_UID, _JOB, self._schema, resumed=False)
        epochs = self._staged()
        for epoch, files in enumerate(epochs[:3]):
            self._publish(epoch, files, "publish() makes the rows of an epoch visible, in order")
        self._publish_again(2, epochs[2], "an epoch that is published again")
        if self._sink.outlives_process:
            self._sink = self._make()
            self._sink.open(_UID, _JOB, self._schema, resumed=True)
            self._publish_again(2, epochs[2], "an epoch that a new process publishes again")
        self._publish(3, epochs[3], "publish() goes on after that")
        if self._sink.guarantee is Guarantee.EXACTLY_ONCE and self._sink.outlives_process:
            self._hand_over()

    def _staged(self) -> list[list[Staged]]:
        tables = iter(self._tables)
        return [
            [file for number in range(count) for file in self._stage(epoch, number, next(tables))]
            for epoch, count in enumerate(_EPOCHS)
        ]

    def _stage(self, epoch: int, number: int, table: pa.Table) -> list[Staged]:
        """What a task does: it has the sink as it was shipped, which was not opened."""
        sink = as_shipped(self._make())
        folder = sink.staging_folder(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{epoch:010d}-{_UID}-l1-{number:04d}-attempt.{sink.extension}"
        name = f"{_UID}-{epoch:010d}-l1-{number:04d}.{sink.extension}"
        staged = list(sink.stage_all(table, path, name))
        for file, _, _ in staged:
            require(sink, "stage() writes the file it is told to", f"{file} is not there", holds=file.exists())
        return [Staged(_UID, str(file), called, rows, file.stat().st_size) for file, called, rows in staged]

    def _publish(self, epoch: int, files: list[Staged], rule: str) -> None:
        before = sum(_EPOCHS[:epoch])
        self._give(epoch, files)
        for table in self._tables[before : before + _EPOCHS[epoch]]:
            self._expected += make_rows(row_class(tuple(table.column_names)), [decode(c) for c in table.columns])
        self._check(rule)

    def _give(self, epoch: int, files: list[Staged]) -> None:
        """Publish, and as at the end of a job let all be seen."""
        self._sink.at_epoch(1000 * epoch, ended=False)
        self._sink.publish(epoch, files)
        self._sink.flush()

    def _publish_again(self, epoch: int, files: list[Staged], what: str) -> None:
        before = self._found()
        self._give(epoch, files)
        if self._sink.guarantee in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE):
            self._check(f"{what} changes nothing, as the guarantee says ({self._sink.guarantee})")
            return
        lost = Counter(before) - Counter(self._found())
        require(self._sink, f"{what} loses nothing", f"it lost {sorted(lost.elements())}", holds=not lost)
        self._expected = self._found()

    def _check(self, rule: str) -> None:
        found, expected = self._found(), [tuple(row) for row in self._expected]
        same = found == expected if self._ordered else Counter(map(repr, found)) == Counter(map(repr, expected))
        require(self._sink, rule, f"a reader finds {found}, not {expected}", holds=same)

    def _found(self) -> Rows:
        return [tuple(row) for row in self._read_back()]

    def _hand_over(self) -> None:
        """A job goes on from a savepoint: one before the output's last epoch is refused, that of the last is not."""
        early = self._make()
        try:
            early.take_over(_UID, _NEXT_JOB, _JOB, 2)
            early.open(_UID, _NEXT_JOB, self._schema, resumed=True)
        except PublishError:
            is_refused = True
        else:
            is_refused = False
        rule = "take_over() refuses output from after the savepoint, with a PublishError: it would come twice"
        require(self._sink, rule, "it took over", holds=is_refused)
        heir = self._make()
        heir.take_over(_UID, _NEXT_JOB, _JOB, 3)
        heir.take_over(_UID, _NEXT_JOB, _JOB, 3)
        heir.open(_UID, _NEXT_JOB, self._schema, resumed=True)
        self._sink = heir
        self._check("take_over() leaves what was published")
