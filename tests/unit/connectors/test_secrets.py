"""A password is never shown, also where an address is written wrongly and a library quotes what it cannot read."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw
from headwater.connectors.dataframes import DeltaSink
from headwater.connectors.postgres import PostgresTable

MARK = "Sw0rdfish"
POSTGRES = [
    "host=127.0.0.1 port=1 password={}",
    "host=127.0.0.1 port=1 password='{} with spaces'",
    "host=127.0.0.1 port=1 password=x sslpassword={}",
    "host=127.0.0.1 port=1 password={} sslmode={}",
    "host=127.0.0.1 port={} password={}",
    "host=127.0.0.1 port=1 password=my {}",
    "host=127.0.0.1 port=1 pass={}",
    "host=127.0.0.1 port=1 password='{}",
    "host=127.0.0.1;port=1;password={}",
    "host=u:{}@127.0.0.1",
    "dbname=postgresql://u:{}@127.0.0.1:1/db",
    "password={} host=127.0.0.1 port=1",
    "postgresql://u:{}@127.0.0.1:1/db",
    "postgresql://u:{}@127.0.0.1:port/db",
    "postgresql://u:{}%zz@127.0.0.1:1/db",
    "postgresql://u:x@{}@127.0.0.1:1/db",
    "postgresql://u:x/{}@127.0.0.1:1/db",
    "postgresql://u:{}/x@127.0.0.1:1/db",
    "postgresql://u:1234/{}@127.0.0.1:1/db",
    "postgresql://u:x@{}/y@127.0.0.1:1/db",
    "postgresql://u:{}?x@127.0.0.1:1/db",
    "postgresql://u:{}#x@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=u&password={}",
    "postgresql://127.0.0.1:1/db?user=u&pass={}",
    "postgresql:u:{}@127.0.0.1:1/db",
    "postgres//u:{}@127.0.0.1:1/db",
    "jdbc:postgresql://127.0.0.1:1/db?user=u&password={}",
    "u:{}@127.0.0.1:1/db",
    "127.0.0.1:1/db?password={}",
    "env:postgresql://u:{}@127.0.0.1:1/db",
    "env:host=127.0.0.1 port=1 password={}",
    "{}",
]
"""Connections as people write them, right and wrong, with a password in them."""
OPTIONS: list[dict[str, Any]] = [
    {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": MARK},
    {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MARK, "sasl.password": MARK},
    {"sasl.pasword": MARK},
    {"sasl.password": "env:KAFKA_SECRET", "debug": "env:KAFKA_SECRET"},
    {"sasl.jaas.config": f"PlainLoginModule required username=u password={MARK};"},
    {"security.protocol": "ssl", "ssl.key.pem": MARK, "ssl.key.password": MARK},
    {"security.protocol": "ssl", "ssl.certificate.pem": f"-----BEGIN {MARK}-----"},
    {"debug": f"{MARK},x"},
    {"message.max.bytes": MARK},
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": f"principal=u {MARK}",
    },
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "u",
        "sasl.oauthbearer.client.secret": MARK,
        "sasl.oauthbearer.token.endpoint.url": f"http://u:{MARK}@127.0.0.1:1/token",
    },
]
QUICK = hw.Retry(attempts=1)


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KAFKA_SECRET", MARK)


def everything(build: Callable[[hw.Environment], Any]) -> str:
    """All that a user can see of a job: what it says of itself, and how it fails."""
    env = hw.Environment("secrets", engine="local")
    seen = []
    try:
        ends = build(env)
        seen += [repr(ends), str(ends), env.explain(), env.describe(), repr(env)]
        seen += [end.describe() for end in ends if hasattr(end, "describe")]
        env.run()
        seen.append("no failure")
    except hw.HeadwaterError as error:
        seen += [str(error), repr(error), "".join(traceback.format_exception(error))]
    return "\n".join(seen)


def is_clean(text: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> bool:
    out, err = capfd.readouterr()
    own_lines = [line for line in text.splitlines() if not line.startswith("    ")]  # traceback quotes this file's code
    return not any(MARK in one for one in ("\n".join(own_lines), out, err, caplog.text))


@pytest.mark.parametrize("form", POSTGRES)
@pytest.mark.parametrize("through", ["sink", "lookup", "environment"])
def test_a_password_for_postgres_is_not_shown(
    form: str,
    through: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = form.replace("{}", MARK)
    if through == "environment":
        if "\0" not in address:
            monkeypatch.setenv("SECRET_DB", address)
        address = "env:SECRET_DB"

    def build(env: hw.Environment) -> list[Any]:
        rows = env.from_rows([(1,)], "n bigint")
        if through == "lookup":
            table = PostgresTable(address, "users", "id bigint, name string")
            found = rows.lookup_join(table, on={"n": "id"})
            found.sink(hw.connectors.memory())
            return [table, found]
        sink = hw.connectors.postgres(address, "users", retry=QUICK)
        return [sink, rows.sink(sink)]

    text = everything(build)
    assert "no failure" not in text
    assert is_clean(text, capfd, caplog), text


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("through", ["source", "sink", "at_least_once"])
def test_options_of_kafka_are_not_shown(
    number: int, through: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Any] = {"options": OPTIONS[number], "timeout": "500 ms"}

    def build(env: hw.Environment) -> list[Any]:
        if through == "source":
            source = hw.connectors.kafka("orders", "127.0.0.1:1", **settings)
            stream = env.source(source, "n bigint")
            stream.sink(hw.connectors.memory())
            return [source, stream]
        delivery: Any = "at_least_once" if through == "at_least_once" else "exactly_once"
        sink = hw.connectors.kafka_sink("orders", "127.0.0.1:1", delivery=delivery, **settings)
        return [sink, env.from_rows([(1,)], "n bigint").sink(sink)]

    text = everything(build)
    assert "no failure" not in text
    assert is_clean(text, capfd, caplog), text


@pytest.mark.parametrize("servers", [f"u:{MARK}@127.0.0.1:1", f"SASL_SSL://u:{MARK}@h:1,h:2", f"env:u:{MARK}@h:1"])
def test_servers_with_a_password_in_them_are_refused(
    servers: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = everything(lambda env: [env.source(hw.connectors.kafka("orders", servers), "n bigint")])
    assert "needs servers; got \"addresses with '@' in them\"" in text
    monkeypatch.setenv("SERVERS", servers)
    later = everything(lambda env: [env.source(hw.connectors.kafka("t", "env:SERVERS"), "n bigint").sink(memory())])
    assert "its variable holds addresses with '@' in them" in later
    assert is_clean(text + later, capfd, caplog)


def memory() -> hw.connectors.Sink:
    return hw.connectors.memory()


def test_options_that_are_no_mapping_are_refused_without_a_look() -> None:
    with pytest.raises(hw.GraphError, match="takes options as a mapping; got 'a str'") as refused:
        hw.connectors.kafka("orders", "h:1", options=f"sasl.password={MARK}")  # type: ignore[arg-type]
    assert MARK not in str(refused.value)


def test_a_key_in_the_address_of_a_table_is_not_shown() -> None:
    assert DeltaSink(f"s3a://key:{MARK}@bucket/table").describe() == "Delta table s3a://…@bucket/table"
