"""How to reach a Kafka cluster: its servers, librdkafka's options, and how long to wait for an answer."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from headwater.connectors.hidden import ENV, is_variable, without
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError, HeadwaterError, JobError, SourceError

LOG = logging.getLogger("headwater.kafka")
TRY_S = 2.0
"""How long to wait for one answer before looking whether there is hope: librdkafka tries again by itself."""
_OURS = {
    "auto.offset.reset": "on_lost=",
    "bootstrap.servers": "servers",
    "enable.auto.commit": "group=, which commits what is published",
    "enable.auto.offset.store": "group=, which commits what is published",
    "enable.partition.eof": "nothing: ranges are read to their ends",
    "error_cb": "the errors of the job, and the logger 'headwater.kafka'",
    "group.id": "group=",
    "isolation.level": "nothing: only committed records are read",
}
"""Options that are not the user's, and what to use instead."""
_SECRET = re.compile("password|secret|token|jaas|pem|oauthbearer")
"""In the names of options whose values are never shown, whoever quotes them."""
_NO_USER = "write 'host:9092' or a list of such, and give user and password in options="
_QUIET: dict[str, Any] = {
    "client.id": "headwater",
    "log_level": 0,  # what librdkafka writes to the error stream comes as errors too, and those are told and logged
    "reconnect.backoff.max.ms": 1000,
    "socket.timeout.ms": 10_000,
}


class Connection:
    """Servers and options; a value 'env:NAME' is taken from the environment where it is used. Shows no option's value."""

    ours: ClassVar[Mapping[str, str]] = _OURS
    rights: ClassVar[str] = "allow the client to read and to describe the topic"
    """What the cluster must allow, for people."""

    def __init__(
        self, servers: str | Iterable[str], options: Mapping[str, Any] | None, timeout: Duration, what: str
    ) -> None:
        self.servers = servers if isinstance(servers, str) else ",".join(servers)
        if not self.servers:
            raise GraphError.bad_argument("kafka", "needs servers", servers, "write 'host:9092' or a list of such")
        if _is_odd(self.servers):
            raise GraphError.bad_argument("kafka", "needs servers", "addresses with '@' in them", _NO_USER)
        if options is not None and not isinstance(options, Mapping):
            raise GraphError.bad_argument(
                "kafka",
                "takes options as a mapping",
                f"a {type(options).__name__}",
                "write options={'sasl.username': …}",
            )
        self._options = dict(options or {})
        for name in sorted(self._options.keys() & self.ours.keys()):
            raise GraphError.bad_argument("kafka", f"sets option {name!r} itself", name, f"use {self.ours[name]}")
        self.timeout_s = duration_ms(timeout, what="timeout") / 1000
        self.what = f"{what} at {self.servers}"
        """What is read or written, for people."""

    def __repr__(self) -> str:
        return f"Connection({self.what})"

    def failed(self, problem: str, action: str) -> HeadwaterError:
        """What goes wrong with this cluster."""
        return SourceError.unreadable(self.what, self.hidden(problem), action)

    def hidden(self, text: str) -> str:
        """A text without the values of options that are secret, and without parts of them."""
        return without(self._values(name for name in self._options if _SECRET.search(name)), text)

    def _values(self, names: Iterable[str]) -> list[str]:
        given = [(self._options[name], _variable(self._options[name])) for name in names]
        return [str(os.environ.get(variable, "") if variable else value) for value, variable in given]

    def denied(self, error: Any) -> HeadwaterError:
        """What the cluster does not allow."""
        return self.failed(f"the cluster does not allow it: {error.str()}", self.rights)

    def config(self, errors: Errors, **ours: Any) -> dict[str, Any]:
        """What a client is made with, and who hears of its errors; names of `ours` have '_' for '.'."""
        own = {name.replace("_", "."): value for name, value in ours.items()}
        given = {name: self._resolved(value) for name, value in self._options.items()}
        servers = self._resolved(self.servers)
        if _is_odd(servers):
            raise self.failed("its variable holds addresses with '@' in them", _NO_USER)
        return {**_QUIET, **own, **given, "bootstrap.servers": servers, "error_cb": errors.hear}

    def made(self, make: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> Any:
        """A client, or what is wrong with the options; never their values."""
        from confluent_kafka import KafkaException

        try:
            return make(config)
        except (KafkaException, TypeError, ValueError) as error:
            said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            raise self.failed(
                f"an option is wrong: {without(self._values(self._options), said)}", "mend options="
            ) from None

    def _resolved(self, value: Any) -> Any:
        variable = _variable(value)
        if not variable:
            return value
        if variable not in os.environ:
            raise self.failed(f"{variable} is not in the environment of this process", "set it where workers start")
        return os.environ[variable]


def _is_odd(servers: str) -> bool:
    """Whether a user and password may be among them, which would be shown: Kafka's addresses have none."""
    return "@" in servers


def _variable(value: Any) -> str:
    """The variable of the environment that a value names; empty if it is the value itself."""
    return value.removeprefix(ENV) if isinstance(value, str) and is_variable(value) else ""


class Errors:
    """The errors that a client of librdkafka has told; it goes on trying, and what asked it decides when to give up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last: Any = None
        self._worst: Any = None

    def hear(self, error: Any) -> None:
        """Called by the client, while it is asked for something."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED):
            self._worst = error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:  # says less than those before it
            self._last = error
        LOG.debug("%s: %s", self._connection.what, self._connection.hidden(error.str()))

    @property
    def is_hopeless(self) -> bool:
        """Whether trying again does not help."""
        return self._worst is not None

    def as_text(self) -> str | None:
        """What is wrong, if something is."""
        error = self._worst or self._last
        return None if error is None else self._connection.hidden(str(error.str()))


def may_pass(error: Any) -> bool:
    """Whether an error can be over in a moment: a broker that starts or stops, a partition that gets another leader."""
    codes = confluent_kafka().KafkaError
    passing = {codes._TRANSPORT, codes._TIMED_OUT, codes._ALL_BROKERS_DOWN, codes._RESOLVE, codes.LEADER_NOT_AVAILABLE}
    passing |= {codes.FENCED_LEADER_EPOCH, codes.UNKNOWN_LEADER_EPOCH, codes.OFFSET_NOT_AVAILABLE}
    return bool(error.retriable()) or error.code() in passing


def is_denied(error: Any) -> bool:
    """Whether somebody must allow something first."""
    codes = confluent_kafka().KafkaError
    return error.code() in (
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.CLUSTER_AUTHORIZATION_FAILED,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )


def confluent_kafka() -> Any:
    """The package, or how to get it."""
    try:
        import confluent_kafka as package
        import confluent_kafka.admin  # the package itself does not
    except ImportError:
        raise JobError.not_supported(
            "hw.connectors.kafka needs the package confluent-kafka", "pip install 'headwater[kafka]'"
        ) from None
    return package
