"""What the systems hold in the end, beside the truth."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from tests.chaos.ends.events import Events
from tests.parts.topics import messages

_CONNECT_S = 30
Window = tuple[tuple[str, int], tuple[int, int]]
"""A user and the end of a window in ms; how many orders there were and their sum."""


def wrong(servers: str, database: str, events: Events) -> dict[str, list[str]]:
    """By output, examples of what is not as it must be; an output that is right is not in it."""
    topic = (row for _, row in _read_committed(servers, "windows"))
    table = _rows(database, 'SELECT "user", window_end, n, total FROM windows')
    found = {
        "totals topic": _wrong_totals(_read_committed(servers, "totals"), events),
        "windows topic": _wrong_windows(
            (
                ((row["user"], _ms(dt.datetime.fromisoformat(row["window_end"]))), (row["n"], row["total"]))
                for row in topic
            ),
            events,
        ),
        "totals table": _wrong_last(_rows(database, 'SELECT "user", n, total FROM totals'), events),
        "windows table": _wrong_windows(
            (((user, _ms(end)), (n, total)) for user, end, n, total in table),
            events,
        ),
    }
    return {name: examples[:5] for name, examples in found.items() if examples}


def _read_committed(servers: str, topic: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Key and value of every record that a `read_committed` consumer sees, in the order of each partition."""
    return ((message.key().decode(), json.loads(message.value())) for message in messages(servers, topic))


def _rows(database: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database, connect_timeout=_CONNECT_S) as connection:
        return connection.execute(query).fetchall()


def _ms(time: dt.datetime) -> int:
    return int((time if time.tzinfo else time.replace(tzinfo=dt.UTC)).timestamp() * 1000)


def _wrong_totals(records: Iterable[tuple[str, dict[str, Any]]], events: Events) -> list[str]:
    """Each user's totals must be there once each, in order, under the user's key."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, row in records:
        found[key].append((row["n"], row["total"]))
    users = sorted(set(found) | set(events.totals))
    return [
        f"{user}: {_parting(found.get(user, []), events.totals.get(user, []))}"
        for user in users
        if found.get(user) != events.totals.get(user)
    ]


def _wrong_last(rows: list[tuple[Any, ...]], events: Events) -> list[str]:
    """Each user's last total must be there, and no other."""
    found, expected = Counter(rows), Counter((user, *totals[-1]) for user, totals in events.totals.items())
    return [f"lost {row}" for row in expected - found] + [f"too many {row}" for row in found - expected]


def _wrong_windows(windows: Iterable[Window], events: Events) -> list[str]:
    found, expected = Counter(windows), Counter(events.windows.items())
    return [f"lost {row}" for row in expected - found] + [f"too many {row}" for row in found - expected]


def _parting(found: list[tuple[int, int]], expected: list[tuple[int, int]]) -> str:
    """Where two lists part, in words."""
    for at, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            return f"at {at} there is {one}, not {other}"
    return f"there are {len(found)}, not {len(expected)}"
