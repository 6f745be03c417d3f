"""The table in which a database keeps what jobs have published: for each sink of a table its job and its newest epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from psycopg import sql

    from headwater.connectors.postgres.connection import Connection

EPOCHS = "headwater_epochs"


@dataclass(frozen=True)
class Entry:
    """Which job a sink's rows are of, up to which epoch they are there, and what it goes on from."""

    job: str
    epoch: int = -1
    before: str | None = None
    """The job whose output it was, before a savepoint of that job was started from."""
    before_epoch: int | None = None
    """The epoch of that savepoint."""

    @property
    def after(self) -> tuple[str | None, int | None]:
        return self.before, self.before_epoch


class Epochs:
    """The entry of one sink. Its methods are for a transaction: who has locked it is alone with it until the end."""

    def __init__(self, schema: str, table: str, sink: str) -> None:
        self.schema, self._key = schema, (table, sink)

    def make(self, connection: Connection) -> None:
        """Make the table if it is missing; of several who want to, one makes it."""
        from psycopg import sql

        if connection.execute("SELECT to_regclass(%s)", [self._name.as_string(connection)]).fetchone() == (None,):
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [EPOCHS])
            connection.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (target text, sink text, job text NOT NULL, epoch bigint NOT NULL, "
                    "before text, before_epoch bigint, changed timestamptz NOT NULL DEFAULT now(), "
                    "PRIMARY KEY (target, sink))"
                ).format(self._name)
            )

    def lock(self, connection: Connection, new: Entry | None = None) -> Entry | None:
        """The entry as it is, when nobody else has it; a new one if there is none and one is given."""
        if new is not None:
            self._run(
                connection,
                "INSERT INTO {} (target, sink, job, epoch, before, before_epoch) VALUES (%s, %s, %s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING",
                [*self._key, new.job, new.epoch, new.before, new.before_epoch],
            )
        found = self._run(
            connection,
            "SELECT job, epoch, before, before_epoch FROM {} WHERE (target, sink) = (%s, %s) FOR UPDATE",
            self._key,
        ).fetchone()
        return None if found is None else Entry(*found)

    def change(self, connection: Connection, entry: Entry) -> None:
        """Put an entry in the place of the one that is locked."""
        self._run(
            connection,
            "UPDATE {} SET (job, epoch, before, before_epoch, changed) = (%s, %s, %s, %s, now()) "
            "WHERE (target, sink) = (%s, %s)",
            [entry.job, entry.epoch, entry.before, entry.before_epoch, *self._key],
        )

    @property
    def _name(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(self.schema, EPOCHS)

    def _run(self, connection: Connection, statement: LiteralString, values: Any) -> Any:
        from psycopg import sql

        return connection.execute(sql.SQL(statement).format(self._name), values)
