from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw

ROWS = "id long, `unit price` double, order long"


def stream(schema: str = ROWS) -> hw.Step:
    env = hw.Environment("columns", engine="local")
    return env.from_rows([(1, 2.5, 3), (2, None, 4)], schema)


def test_a_column_is_added_behind_the_others() -> None:
    found = stream().with_column("cost", "`unit price` * order")
    assert found.schema == hw.Schema.of("id long, `unit price` double, order long, cost double")
    assert [row[-1] for row in found.collect()] == [7.5, None]


def test_a_column_is_replaced_in_its_place() -> None:
    found = stream().with_column("id", "cast(id + 10 as string)")
    assert found.schema == hw.Schema.of("id string, `unit price` double, order long")
    assert [row.id for row in found.collect()] == ["11", "12"]


def test_columns_are_dropped_and_renamed_whatever_their_names() -> None:
    found = stream().drop("id").rename({"unit price": "price", "order": "select"})
    assert found.schema == hw.Schema.of("price double, `select` long")
    assert list(map(tuple, found.collect())) == [(2.5, 3), (None, 4)]


def test_names_can_be_exchanged() -> None:
    found = stream("a long, b double, c long").rename({"a": "c", "c": "a"})
    assert found.schema.names == ["c", "b", "a"]
    assert [(row.c, row.a) for row in found.collect()] == [(1, 3), (2, 4)]


def test_rows_keep_their_event_time() -> None:
    env = hw.Environment("times", engine="local")
    rows = env.from_rows([(7, 1)], "at long, n long", hw.Watermarks.monotonous("at"))
    counted = rows.drop("at").key_by("n").window(hw.tumbling("5 ms")).agg(rows=hw.count())
    assert [(row.n, row.rows) for row in counted.collect()] == [(1, 1)]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s: s.drop("price"), "step 'drop': there is no field 'price'; the fields are id, unit price, order"),
        (lambda s: s.drop(), "step 'drop' takes away some columns and leaves some; got .*; name those to drop"),
        (lambda s: s.drop("id", "unit price", "order"), "takes away some columns and leaves some"),
        (lambda s: s.rename({"price": "p"}), "step 'rename': there is no field 'price'"),
        (lambda s: s.rename({"id": "order"}), "field names must be unique; 'order' appears twice"),
        (lambda s: s.rename("id"), "step 'rename' takes a dict of old names and new ones"),
        (lambda s: s.with_column("n", 3), "step 'with_column' takes a name and a SQL expression"),
        (lambda s: s.with_column("n", "sum(id)"), "step 'with_column': .* is not one scalar expression"),
    ],
)
def test_what_makes_no_sense_is_refused(step: Callable[[hw.Step], Any], message: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=message):
        step(stream())


def test_upserts_stay_upserts_where_their_key_stays() -> None:
    changes = stream("id long, price double, n long").as_changelog(key="id")
    assert changes.drop("n").with_column("twice", "price * 2").changelog.describe() == "upsert by id"
    assert changes.rename({"id": "key"}).changelog.describe() == "retract"
    assert changes.with_column("id", "id % 2").changelog.describe() == "retract"
