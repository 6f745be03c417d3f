"""Functions in Python that queries call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw

ROWS = [("abc", 1), ("cc", 2), (None, 3)]


def env_with(**functions: Callable[..., Any]) -> hw.Environment:
    env = hw.Environment("functions", engine="local", max_rows_per_epoch=1)
    env.create_view("words", env.from_rows(ROWS, "word string, n int"))
    for name, function in functions.items():
        env.create_function(name, function)
    return env


def count_char(text: str | None, letter: str) -> int | None:
    return None if text is None else text.count(letter)


def twice(number: int) -> int:
    return 2 * number


def rows_of(env: hw.Environment, text: str) -> list[Any]:
    return sorted((tuple(row) for row in env.sql(text).collect()), key=repr)


def test_a_function_is_called_row_by_row_with_its_types() -> None:
    env = env_with(count_char=count_char)
    assert rows_of(env, "SELECT n, count_char(word, 'c') AS c FROM words") == [(1, 1), (2, 2), (3, None)]


def test_calls_can_stand_inside_of_each_other_and_of_expressions() -> None:
    env = env_with(twice=twice)
    assert rows_of(env, "SELECT twice(twice(n) + 1) + 1 AS m FROM words WHERE twice(n) > 2") == [(11,), (15,)]


def test_a_condition_calls_a_function_only_for_rows_that_the_others_keep() -> None:
    seen: list[int] = []

    def noted(number: int) -> bool:
        seen.append(number)
        return True

    assert rows_of(env_with(noted=noted), "SELECT n FROM words WHERE noted(n) AND n > 2") == [(3,)]
    assert seen == [3]


def test_groups_and_aggregates_go_by_functions() -> None:
    env = env_with(twice=twice, count_char=count_char)
    shown = "count_char(word, 'c') AS c, SUM(twice(n)) AS s, twice(COUNT(*)) AS k"
    text = f"SELECT {shown} FROM words GROUP BY count_char(word, 'c')"
    assert rows_of(env, f"SELECT * FROM ({text}) WHERE c IS NOT NULL") == [(1, 2, 2, "+I"), (2, 4, 2, "+I")]


def test_a_function_over_groups_takes_back_what_it_gave() -> None:
    env = env_with(twice=twice)
    changes = [
        tuple(row) for row in env.sql("SELECT twice(total) AS t FROM (SELECT SUM(n) AS total FROM words)").collect()
    ]
    assert changes == [(2, "+I"), (2, "-U"), (6, "+U"), (6, "-U"), (12, "+U")]


def test_a_function_over_arrow_gets_whole_columns() -> None:
    env = env_with()
    env.create_function("add_up", pc.add, arguments=["bigint", "bigint"], returns="bigint", takes_arrow=True)
    assert rows_of(env, "SELECT add_up(n, 10) AS m FROM words") == [(11,), (12,), (13,)]


def test_a_function_that_gives_an_array_is_a_table() -> None:
    env = env_with()
    env.create_function("letters", lambda text: list(text or ""), arguments=["string"], returns="array<string>")
    found = [("a", 1), ("b", 1), ("c", 1), ("c", 2), ("c", 2)]
    assert rows_of(env, "SELECT t.letter, n FROM words, LATERAL TABLE(letters(word)) AS t (letter)") == found
    assert rows_of(env, "SELECT t.letter, n FROM words CROSS JOIN UNNEST(letters(word)) AS t (letter)") == found


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("count_char(word)", "COUNT_CHAR got 1 arguments; it takes (string, string)"),
        ("twice(word)", "an argument of TWICE is of type string where bigint is needed"),
    ],
)
def test_wrong_arguments_are_told_with_their_place(call: str, said: str) -> None:
    with pytest.raises(hw.SqlError, match="line 1, column") as error:
        env_with(count_char=count_char, twice=twice).sql(f"SELECT {call} AS x FROM words")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("upper", twice, "has the name of a built-in function"),
        ("no name", twice, "needs a name of letters"),
        ("bare", lambda value: value, "does not say the type of 'value'"),
        ("five", 5, "needs a function"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(name: str, function: Any, said: str) -> None:
    with pytest.raises(hw.SqlError, match=said):
        env_with().create_function(name, function)


def test_a_function_that_fails_is_named_with_what_it_got() -> None:
    def broken(number: int) -> int:
        raise ValueError(f"no {number}")

    with pytest.raises(hw.UserCodeError, match=r"step 'query.function: broken\(1\)' failed: ValueError: no 1"):
        env_with(broken=broken).sql("SELECT broken(n) AS x FROM words").collect()


def test_a_condition_of_a_join_may_call_a_function() -> None:
    def near(one: int, other: int) -> bool:
        return abs(one - other) < 2

    env = env_with(near=near)
    pairs = "SELECT a.n AS one, b.n AS other FROM words a {} words b ON a.word = b.word AND near(a.n, b.n)"
    found = env.sql(pairs.format("JOIN")).collect()
    assert found
    assert all(abs(row.one - row.other) < 2 for row in found)
    assert env.sql("SELECT a.n FROM words a, words b WHERE a.word = b.word AND near(a.n, b.n)").collect()
    with pytest.raises(hw.SqlError, match="near in the condition of this join is not supported"):
        env.sql(pairs.format("LEFT JOIN"))


def test_a_result_of_another_type_is_refused() -> None:
    env = env_with()
    env.create_function("wrong", lambda n: pa.array(["x"] * len(n)), arguments=["int"], returns="int", takes_arrow=True)
    with pytest.raises(hw.RowError, match="an array of type int32"):
        env.sql("SELECT wrong(n) AS x FROM words").collect()
