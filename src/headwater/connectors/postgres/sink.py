"""Rows out to a PostgreSQL table: an epoch's rows and its number are committed in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from headwater.connectors.contract import Changes, Guarantee, Sink, Staged, read_staged
from headwater.connectors.postgres.connection import Address, AddressError, table_name
from headwater.connectors.postgres.epochs import EPOCHS, Entry, Epochs
from headwater.connectors.postgres.room import Room
from headwater.connectors.postgres.target import Target, create_statement
from headwater.connectors.postgres.writing import Append, Upsert, Writing
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema
from headwater.errors import GraphError, PublishError, SchemaError
from headwater.retry import OF_DATABASE, Retry

if TYPE_CHECKING:
    import psycopg

    from headwater.connectors.postgres.connection import Connection

T = TypeVar("T")
_MODES = ("append", "upsert")
_PASSING = ("08", "40001", "40P01", "53300", "55P03", "57P")
"""How the codes of failures begin that may be gone a moment later: connections lost or refused, transactions that others
were in the way of, locks not had in time, a server that stops or starts."""
_OF_ROWS = ("22", "23")
"""How the codes of failures begin that are a row's: values that are no data for a column, and violated constraints."""
_LIMITS = """
SELECT set_config('lock_timeout', '60s', true), set_config('tcp_keepalives_idle', '30', true),
       set_config('tcp_keepalives_interval', '10', true), set_config('tcp_keepalives_count', '3', true)
"""
"""For one transaction: no lock is waited for without end, and the server notices soon when the driver's machine is gone."""


class PostgresSink(Sink):
    """Appends rows to a table, or keeps a row a key in it; the database itself knows which epochs it has.

    `headwater_epochs`, beside the table, has a line for each sink that writes to it. A transaction locks that line first:
    of two runs of a job one waits, and then sees what the other has published.
    """

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(
        self,
        connection: str,
        table: str,
        *,
        mode: str = "append",
        key: str | Sequence[str] | None = None,
        retry: Retry = OF_DATABASE,
        create: bool = False,
    ) -> None:
        self._address: Address | None = Address(connection, "postgres")
        table_name(table, "postgres")
        if mode not in _MODES:
            raise GraphError.bad_argument("postgres", f"writes by {' or '.join(_MODES)}", mode, "choose one of them")
        self._key = [key] if isinstance(key, str) else list(key or ())
        if bool(self._key) != (mode == "upsert"):
            rule = "needs a key to upsert by" if mode == "upsert" else "has no use for a key when it appends"
            raise GraphError.bad_argument("postgres", rule, key, "write mode='upsert', key='id', or leave both out")
        if not isinstance(retry, Retry):
            raise GraphError.bad_argument("postgres", "needs a retry", retry, "write retry=hw.Retry(attempts=5)")
        self._table, self._mode, self._retry, self._creates = table, mode, retry, create
        if self._key:
            self.changes, self.upsert_key = Changes.APPLIED, tuple(self._key)
        self._place = self._address.place
        self._uid = ""
        self._mine = Entry("")
        self._connection: Connection | None = None
        self._epochs: Epochs | None = None
        self._writing: Writing | None = None
        self._room: Room | None = None
        """Known when it is open, and then in tasks too."""

    def __getstate__(self) -> dict[str, Any]:
        """Tasks only stage files: they get neither the password nor the connection."""
        kept = ("_table", "_mode", "_place", "_uid", "_room")
        return {**{name: getattr(self, name) for name in kept}, "_address": None}

    def describe(self) -> str:
        return f"PostgreSQL table {self._table} at {self._place}, by {self._mode}"

    def stage(self, table: pa.Table, path: Path) -> None:
        if self._room is not None:
            self._room.check(table, self._uid)
        super().stage(table, path)

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        self._uid, self._mine = uid, Entry(job_id, -1, before, epoch)

        def take(connection: Connection) -> None:
            target = Target.find(connection, table_name(self._table, "postgres"))
            if target is None:
                return  # a table that is made by `open` has no rows of another job
            epochs = self._made(connection, target)
            entry = epochs.lock(connection, self._mine)
            assert entry is not None
            if entry.job == job_id:
                return
            if entry.job != before and entry.after != self._mine.after:
                raise self._refused(entry)
            if entry.epoch > epoch:
                action = f"write to another table, or remove them, and set their epoch in {EPOCHS} to {epoch}"
                raise PublishError.published_after(uid, self._output, epoch, f"it has epoch {entry.epoch}", action)
            epochs.change(connection, replace(self._mine, epoch=entry.epoch))

        self._begin(take)

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        if self._mine.job != job_id:
            self._mine = Entry(job_id)
        self._uid = uid
        rows = self._rows_of(schema.arrow)

        def prepare(connection: Connection) -> None:
            target = self._found(connection, rows)
            self._epochs = self._made(connection, target)
            entry = self._epochs.lock(connection, self._mine)
            if entry is None or entry.job != job_id or (not resumed and entry.epoch >= 0):
                raise self._refused(entry)
            target.check(uid, self._output, rows)
            fields = [(field, target.columns[field.name]) for field in rows]
            self._room = Room(tuple(column for _, column in fields), tuple(self._key))
            name = table_name(self._table, "postgres")
            self._writing = Upsert(uid, name, fields, self._key) if self._key else Append(name, fields)

        self._begin(prepare)

    def publish(self, epoch: int, files: list[Staged]) -> None:
        if not files:
            return
        epochs, writing = self._epochs, self._writing
        assert epochs is not None
        assert writing is not None

        def write(connection: Connection) -> None:
            entry = epochs.lock(connection)
            if entry is None or entry.job != self._mine.job:
                raise self._refused(entry)
            if epoch <= entry.epoch:
                return
            writing.write(connection, (self._read(file) for file in files))
            epochs.change(connection, replace(entry, epoch=epoch))

        try:
            self._transact(write)
        except _Failed as failed:
            way_out = "" if failed.passes else f" ({failed.action})"
            raise PublishError.failed(self._uid, epoch, f"{self._output}: {failed.why}{way_out}") from None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def _output(self) -> str:
        return f"PostgreSQL table {self._table} at {self._place}"

    def _rows_of(self, schema: pa.Schema) -> pa.Schema:
        """The columns that are written."""
        for name in self._key:
            if name not in schema.names or name == ROW_KIND:
                raise SchemaError.no_field(name, [name for name in schema.names if name != ROW_KIND], self._uid)
        if not self._key:
            return schema
        return pa.schema([field for field in schema if field.name != ROW_KIND])

    def _found(self, connection: Connection, rows: pa.Schema) -> Target:
        name = table_name(self._table, "postgres")
        target = Target.find(connection, name)
        if target is None and self._creates:
            connection.execute(create_statement(name, rows, self._key))
            target = Target.find(connection, name)
        if target is None:
            raise self._not_written("there is no such table", "create it, or write create=True")
        if self._key and frozenset(self._key) not in target.unique:
            columns = ", ".join(self._key)
            raise self._not_written(
                f"it has no unique index on ({columns}), so rows of a key cannot be told apart",
                f"add one: ALTER TABLE {self._table} ADD PRIMARY KEY ({columns})",
            )
        return target

    def _made(self, connection: Connection, target: Target) -> Epochs:
        epochs = Epochs(target.schema, target.table, self._uid)
        epochs.make(connection)
        return epochs

    def _read(self, file: Staged) -> pa.Table:
        try:
            return read_staged(file)
        except FileNotFoundError:
            raise PublishError.staged_file_missing(self._uid, file.path) from None

    def _begin(self, work: Callable[[Connection], None]) -> None:
        """Do something before the first epoch: a server that cannot be reached is told at once."""
        try:
            self.close()
            self._connection = self._connected()
            self._transact(work)
        except _Failed as failed:
            raise self._not_written(failed.why, failed.action) from None

    def _transact(self, work: Callable[[Connection], T]) -> T:
        """Do something in a transaction, again with a new connection if it fails for a reason that passes.

        Whether a transaction whose commit was not answered took place, the next attempt sees: it does nothing twice.
        """
        import psycopg

        failed = 0
        while True:
            try:
                connection = self._connection = self._connection or self._connected()
                with connection.transaction():
                    connection.execute(_LIMITS)
                    return work(connection)
            except (psycopg.Error, _Failed) as error:
                self.close()
                failed += 1
                reason = error if isinstance(error, _Failed) else self._failure(error)
                if not reason.passes or failed == self._retry.attempts:
                    raise reason.after(failed) from None
            time.sleep(self._retry.delay_ms(failed) / 1000)

    def _connected(self) -> Connection:
        import psycopg

        assert self._address is not None, "tasks do not connect"
        try:
            return self._address.connect()
        except AddressError as error:
            raise _Failed(error.why, error.action, passes=False) from None
        except psycopg.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: psycopg.Error) -> _Failed:
        assert self._address is not None, "tasks do not connect"
        return _Failed.of(error, self._address.why(error))

    def _not_written(self, problem: str, action: str) -> PublishError:
        return PublishError.cannot_write(self._uid, self._output, problem, action)

    def _refused(self, entry: Entry | None) -> PublishError:
        if entry is not None and entry.before == self._mine.job:
            return PublishError.handed_over(self._uid, self._output, entry.before_epoch or 0, entry.job)
        owner = f"its line in {EPOCHS} is gone" if entry is None else f"sink {self._uid!r} of job {entry.job}"
        action = f"give this sink another uid with .with_uid(...), or remove the line of the other from {EPOCHS}"
        return PublishError.output_of_another_job(self._uid, self._output, owner, self._mine.job, action)


class _Failed(Exception):
    """What the server, or the way to it, refuses: why, what to do, and whether it may be gone a moment later."""

    def __init__(self, reason: str, action: str, *, passes: bool) -> None:
        super().__init__(reason)
        self.why, self.action, self.passes = reason, action, passes

    @classmethod
    def of(cls, error: psycopg.Error, reason: str) -> _Failed:
        import psycopg

        lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
        passes = lost or (error.sqlstate or "").startswith(_PASSING)
        action = "see that the server runs and answers" if passes else "mend the table, or what the server complains of"
        if (error.sqlstate or "").startswith(_OF_ROWS):
            action = "only the server could know that: change the table so that it takes the row"
        return cls(reason, f"{action}, and start the job again", passes=passes)

    def after(self, attempts: int) -> _Failed:
        """The same, with the number of attempts where there were several."""
        reason = self.why if attempts == 1 else f"{self.why} (tried {attempts} times)"
        return _Failed(reason, self.action, passes=self.passes)
