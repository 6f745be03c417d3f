"""State of one type as state of another: what is allowed, and what is refused with the reason."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.data.schema import parse_type
from headwater.savepoints.errors import Impossible
from headwater.savepoints.evolution import Evolution, is_widening


def evolved(
    before: str, values: list[Any], after: str, renamed: dict[str, str] | None = None
) -> tuple[list[Any], list[str]]:
    """Values of one type as those of another, and the notes."""
    evolution = Evolution(renamed or {})
    table = pa.table({"value": pa.array(values, parse_type(before))})
    found = evolution.table(table, pa.schema([pa.field("value", parse_type(after))]))
    found.validate(full=True)
    return found["value"].to_pylist(maps_as_pydicts="strict"), evolution.notes


@pytest.mark.parametrize(
    ("before", "after", "value", "found"),
    [
        ("tinyint", "bigint", 7, 7),
        ("int", "double", 7, 7.0),
        ("float", "double", 0.5, 0.5),
        ("int", "decimal(12,2)", 7, Decimal("7.00")),
        ("decimal(5,2)", "decimal(8,3)", Decimal("1.25"), Decimal("1.250")),
        ("void", "string", None, None),
    ],
)
def test_numbers_become_wider(before: str, after: str, value: Any, found: Any) -> None:
    assert evolved(before, [value, None], after)[0] == [found, None]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bigint", "int"),
        ("bigint", "double"),
        ("double", "float"),
        ("double", "bigint"),
        ("int", "float"),
        ("bigint", "decimal(18,0)"),
        ("decimal(8,3)", "decimal(8,2)"),
        ("decimal(8,3)", "decimal(8,4)"),
        ("int", "string"),
        ("string", "binary"),
        ("timestamp", "timestamp_ntz"),
        ("date", "timestamp"),
        ("array<int>", "int"),
        ("struct<a: int>", "map<string, int>"),
        ("map<int, string>", "map<bigint, string>"),
        ("struct<a: bigint>", "struct<a: int>"),
        ("array<bigint>", "array<int>"),
        ("struct<a: int>", "struct<a: int not null>"),
        ("struct<a: int>", "struct<a: int, b: int not null>"),
    ],
)
def test_nothing_becomes_narrower_or_something_else(before: str, after: str) -> None:
    with pytest.raises(Impossible, match="value"):
        evolved(before, [], after)


def test_widening_is_never_the_other_way_round() -> None:
    types = [parse_type(t) for t in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,2)")]
    for old in types:
        for new in types:
            assert old == new or not (is_widening(old, new) and is_widening(new, old)), (old, new)


def test_fields_are_added_as_nulls_however_deep_they_are() -> None:
    before = "struct<a: int, in: struct<b: int>, many: array<struct<c: int>>, named: map<string, struct<d: int>>>"
    after = (
        "struct<a: bigint, in: struct<b: int, x: string>, many: array<struct<c: int, y: string>>, "
        "named: map<string, struct<d: int, z: array<int>>>, new: map<string, int>>"
    )
    value = {"a": 1, "in": {"b": 2}, "many": [{"c": 3}, {"c": 4}], "named": {"k": {"d": 5}}}
    sparse = {"a": None, "in": None, "many": [], "named": {}}
    found, notes = evolved(before, [value, None, sparse, value], after)
    assert found[0] == found[3]
    assert found[0] == {
        "a": 1,
        "in": {"b": 2, "x": None},
        "many": [{"c": 3, "y": None}, {"c": 4, "y": None}],
        "named": {"k": {"d": 5, "z": None}},
        "new": None,
    }
    assert found[1] is None
    assert found[2] == {"a": None, "in": None, "many": [], "named": {}, "new": None}
    assert notes == [
        "value.a was int, is bigint",
        "value.in.x added",
        "value.many.y added",
        "value.named.z added",
        "value.new added",
    ]


def test_fields_are_dropped_and_put_into_another_order() -> None:
    found, notes = evolved("struct<a: int, b: string, c: int>", [{"a": 1, "b": "x", "c": 3}], "struct<c: int, a: int>")
    assert found == [{"c": 3, "a": 1}]
    assert notes == ["value.b dropped"]


def test_fields_are_renamed_however_deep_they_are() -> None:
    renamed = {"value.a": "one", "value.many.b": "two", "value.swap": "other", "value.other": "swap"}
    found, notes = evolved(
        "struct<a: int, many: array<struct<b: int>>, swap: int, other: int>",
        [{"a": 1, "many": [{"b": 2}], "swap": 3, "other": 4}],
        "struct<one: bigint, many: array<struct<two: int>>, swap: int, other: int>",
        renamed,
    )
    assert found == [{"one": 1, "many": [{"two": 2}], "swap": 4, "other": 3}]
    assert "value.a renamed to 'one'" in notes
    assert "value.a was int, is bigint" in notes


@pytest.mark.parametrize(
    ("renamed", "why"),
    [
        ({"value.x": "a"}, r"there is no value\.x in it to be renamed to 'a'"),
        ({"value.a": "x"}, r"value\.a is to be renamed to 'x', which the program does not have"),
        ({"value.a": "b"}, r"value\.a and value\.b would both be 'b'"),
        ({"other": "value"}, "there is no other in it"),
    ],
)
def test_a_renaming_that_is_a_mistake_is_not_taken_for_a_loss(renamed: dict[str, str], why: str) -> None:
    with pytest.raises(Impossible, match=why):
        evolved("struct<a: int, b: int>", [], "struct<a: int, b: int>", renamed)


def test_pieces_of_arrays_are_what_they_seem() -> None:
    """Arrow arrays may begin in the middle of their buffers."""
    whole = pa.table({"value": pa.array([[1], [2, 3], None, [4]], pa.list_(pa.int32()))})
    wanted = pa.schema([pa.field("value", pa.list_(pa.int64()))])
    assert Evolution().table(whole.slice(1, 2), wanted)["value"].to_pylist() == [[2, 3], None]
    maps = pa.table({"value": pa.array([[("a", 1)], [("b", 2)], None], pa.map_(pa.string(), pa.int32()))})
    wanted = pa.schema([pa.field("value", pa.map_(pa.string(), pa.int64()))])
    assert Evolution().table(maps.slice(1), wanted)["value"].to_pylist() == [[("b", 2)], None]


def key_table(dtype: str, *values: Any) -> pa.Table:
    return pa.table({"key": pa.array(values, parse_type(dtype)), "value": pa.array([1] * len(values), pa.int32())})


def schema_of(key: str) -> pa.Schema:
    return pa.schema([pa.field("key", parse_type(key)), pa.field("value", pa.int64())])


def test_the_columns_of_a_key_may_have_other_names() -> None:
    table = key_table("struct<a: int, b: struct<c: string>>", {"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None})
    found = Evolution().table(table, schema_of("struct<x: int, y: struct<z: string>>"), {"key"})
    assert found["key"].to_pylist() == [{"x": 1, "y": {"z": "x"}}, {"x": 2, "y": None}]
    assert found["value"].to_pylist() == [1, 1]


@pytest.mark.parametrize("key", ["bigint", "string", "struct<a: int>"])
def test_a_key_of_another_type_is_another_key(key: str) -> None:
    with pytest.raises(Impossible, match="the key was int, is"):
        Evolution().table(key_table("int"), schema_of(key), {"key"})


def test_a_key_column_cannot_be_made_up() -> None:
    table = pa.table({"user": pa.array([], pa.string())})
    with pytest.raises(Impossible, match="key column 'account' is not in it, which has user"):
        Evolution().table(table, pa.schema([pa.field("account", pa.string())]), {"account"})


def test_a_column_that_must_not_be_null_cannot_be_made_up() -> None:
    table = pa.table({"user": pa.array(["ann"], pa.string())})
    wanted = pa.schema([pa.field("user", pa.string()), pa.field("n", pa.int32(), nullable=False)])
    with pytest.raises(Impossible, match="n is new and must not be null"):
        Evolution().table(table, wanted)
