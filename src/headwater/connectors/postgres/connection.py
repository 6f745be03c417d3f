"""How to connect to a PostgreSQL server, without ever showing a password."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from headwater.connectors.hidden import ENV, is_variable, without
from headwater.errors import GraphError, JobError

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

    Connection = psycopg.Connection[tuple[Any, ...]]

_FORMS = "'host=… dbname=… user=…' or 'postgresql://…'"
_WAITS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Unless the connection says otherwise: libpq would wait for minutes or hours for a server that does not answer."""
_PLAIN = {"host": r"[^@=;?\s]*", "hostaddr": r"[^@=;?\s]*", "port": r"[\d,]*", "dbname": r"[^@=;:]*"}
"""What these parts look like. One that does not is a piece of something else: where a password has an '@' or a '/' in it
that is not written as %40 or %2F, the rest of it is taken for the host, the port or the database, and would be shown."""
_SECRET = ("password", "sslpassword", "oauth_client_secret")


class AddressError(Exception):
    """A connection that cannot be known in this process: why, and what to do."""

    def __init__(self, why: str, action: str) -> None:
        super().__init__(f"{why}; {action}")
        self.why, self.action = why, action


class Address:
    """Where a server is and who one is there: a conninfo string, a postgresql:// address, or 'env:NAME'.

    With 'env:NAME' each process finds it in its environment; otherwise it travels as it is, password and all.
    """

    def __init__(self, given: str, user: str) -> None:
        """`user` is the constructor that was given it, for errors."""
        load_psycopg(user)  # where it is missing, say so while the job is built
        self._given = given
        self.place = given
        """For people."""
        if not is_variable(given):
            facts = _facts_of(given)
            if facts is None:
                raise GraphError.bad_argument(
                    user,
                    "needs a connection",
                    "what cannot be read",
                    f"write {_FORMS} or 'env:NAME'; in an address, write '@' and '/' of a password as %40 and %2F",
                )
            self.place = f"{facts.get('host', 'localhost')}:{facts.get('port', 5432)}/{facts.get('dbname', '')}"

    def connect(self) -> Connection:
        """A new connection, in which every statement outside a transaction is one of its own."""
        import psycopg

        # Statements are not prepared: the number of keys, so the best plan, differs, and poolers need not allow it.
        connection: Connection = psycopg.connect(**{**_WAITS, **self._facts()}, autocommit=True, prepare_threshold=None)
        return connection

    def why(self, error: psycopg.Error) -> str:
        """What the server or the library says, in one line, without the password, which they may quote."""
        said = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
        text = said if error.diag.context is None else f"{said} ({error.diag.context.splitlines()[0]})"
        try:
            facts = self._facts()
        except AddressError:
            return text
        return without((str(facts[name]) for name in _SECRET if name in facts), text)

    def _facts(self) -> dict[str, Any]:
        given = self._given
        name = given.removeprefix(ENV)
        if is_variable(given):
            if name not in os.environ:
                raise AddressError(
                    f"{name} is not in the environment of this process", "set it where drivers and workers start"
                )
            given = os.environ[name]
        facts = _facts_of(given)
        if facts is None:
            raise AddressError(f"what {name} holds is not a connection", f"set it to {_FORMS}")
        return facts


def with_login(connection: str, user: str | None, password: str | None) -> str:
    """The connection with a user and a password; one that cannot be read, or is 'env:NAME', is left to who reads it."""
    psycopg = load_psycopg("postgres")
    given = {name: value for name, value in (("user", user), ("password", password)) if value is not None}
    if not given or _facts_of(connection) is None:
        return connection
    made: str = psycopg.conninfo.make_conninfo(connection, **given)
    return made


def table_name(name: str, user: str) -> sql.Identifier:
    """A table's name, perhaps with its schema's before it, to be put into statements."""
    from psycopg import sql

    if not name or not all(name.split(".")):
        raise GraphError.bad_argument(user, "needs a table's name", name, "write 'users' or 'app.users'")
    return sql.Identifier(*name.split("."))


def load_psycopg(user: str) -> Any:
    """The package, or an error that says how to install it."""
    try:
        import psycopg
    except ImportError:
        raise JobError.not_supported(
            f"hw.connectors.{user} needs the package psycopg", "pip install 'headwater[postgres]'"
        ) from None
    return psycopg


def _facts_of(connection: str) -> dict[str, Any] | None:
    """The parts of a connection; None if it cannot be read, or not as it was meant: the reason may show the password."""
    import psycopg

    try:
        facts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(connection)
    except psycopg.ProgrammingError:
        return None
    is_plain = all(re.fullmatch(form, str(facts.get(name, ""))) for name, form in _PLAIN.items())
    return facts if is_plain else None
