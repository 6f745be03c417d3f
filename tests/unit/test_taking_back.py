"""Aggregates over rows of which some are taken back: what is left counts, whenever and in whichever piece it came."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.test_aggregation import EVERY, NUMBERS, ORDERED, REFERENCE, STRUCTS, WILD, alike, results, table_of

from headwater import aggregates as hw
from headwater.aggregates import Aggregate
from headwater.aggregates.facts import FACTS
from headwater.data.schema import Schema
from headwater.errors import GraphError, RowError
from headwater.operators.aggregation import Aggregation
from headwater.operators.aggregation.kernels import TAKING_BACK

Change = tuple[bool, int, tuple[Any, ...]]
"""Whether a row adds, its group, and its values."""


@st.composite
def changes(draw: st.DrawFn, *columns: st.SearchStrategy[Any]) -> list[Change]:
    """Rows, some of which are taken back, at any time: also before they come."""
    row = st.tuples(*(st.none() | column for column in columns))
    few = draw(st.lists(row, min_size=1, max_size=6))
    added = draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(few)), max_size=20))
    script: list[Change] = [(True, group, values) for group, values in added]
    for group, values in added:
        if draw(st.booleans()):
            script.insert(draw(st.integers(0, len(script))), (False, group, values))
    return script


def same(value: Any) -> Any:
    """A form of a value that can be looked up, equal for values that are."""
    if isinstance(value, dict):
        return tuple(same(v) for v in value.values())
    if isinstance(value, list | tuple):
        return tuple(map(same, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def left(script: list[Change], group: int) -> list[tuple[Any, ...]]:
    """The rows of a group that are left: of equal ones the first is taken back first."""
    taken = Counter(same(values) for adds, at, values in script if at == group and not adds)
    found = []
    for adds, at, values in script:
        if at == group and adds:
            if taken[same(values)]:
                taken[same(values)] -= 1
            else:
                found.append(values)
    return found


def accumulated(aggregation: Aggregation, schema: Schema, script: list[Change], cuts: list[int]) -> pa.Table:
    """One row of accumulators for each of three groups, put together of pieces from the first on."""
    edges = sorted({0, len(script), *(cut % (len(script) + 1) for cut in cuts)})
    merged = pa.concat_tables([aggregation.empty()] * 3)
    for number, (start, end) in enumerate(pairwise(edges)):
        piece = script[start:end]
        table = table_of(schema, [values for _, _, values in piece])
        adds = np.array([adds for adds, _, _ in piece])
        groups = np.array([group for _, group, _ in piece], np.int64)
        partial = aggregation.partial(table, groups, 3, adds)
        merged = aggregation.merge(pa.concat_tables([merged, partial]), np.tile(np.arange(3), 2), 3)
        if number % 2:
            merged = aggregation.settle(merged)
    assert merged.schema == pa.schema(aggregation.fields)
    return merged


def stored(schema: Schema, script: list[Change]) -> list[Change]:
    """The rows as Arrow gives them back."""
    table = table_of(schema, [values for _, _, values in script])
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [(adds, group, row) for (adds, group, _), row in zip(script, rows, strict=True)]


def check(functions: list[str], ddl: str, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    schema = Schema.of(f"v {ddl}")
    script = stored(schema, data.draw(changes(values)))
    aggregation = Aggregation({f: getattr(hw, f)("v") for f in functions}, schema, "s", takes_back=True)
    empty = results(aggregation, aggregation.empty())[0]
    in_pieces = accumulated(aggregation, schema, script, data.draw(st.lists(st.integers(0, 100), max_size=5)))
    for kept in (accumulated(aggregation, schema, script, []), in_pieces, aggregation.settle(in_pieces)):
        for group, row in enumerate(results(aggregation, kept)):
            rest = [values[0] for values in left(script, group)]
            assert aggregation.left(kept)[group] == len(rest)
            wanted = [REFERENCE[f](rest) for f in functions] if rest else empty
            for function, got, want in zip(functions, row, wanted, strict=True):
                form = by_value if function == "collect_set" else list
                assert alike(form([got]), form([want])), (function, rest, got, want)


def by_value(lists: list[list[Any]]) -> list[list[Any]]:
    """Sets, whose order is not looked at."""
    return [sorted(one, key=lambda value: repr(same(value))) for one in lists]


@pytest.mark.parametrize("ddl", sorted(EVERY))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_type_is_counted_and_kept(ddl: str, data: st.DataObject) -> None:
    check(["count", "first", "last", "first_value", "last_value", "collect_list"], ddl, EVERY[ddl], data)


@pytest.mark.parametrize("ddl", sorted(ORDERED | STRUCTS))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_different_values(ddl: str, data: st.DataObject) -> None:
    check(["collect_set", "count_distinct"], ddl, EVERY[ddl], data)


@pytest.mark.parametrize("ddl", sorted(ORDERED))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_smallest_and_largest(ddl: str, data: st.DataObject) -> None:
    check(["min", "max"], ddl, ORDERED[ddl], data)


@pytest.mark.parametrize("ddl", sorted(NUMBERS))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_sum_mean_and_spread(ddl: str, data: st.DataObject) -> None:
    check(["sum", "avg", "var", "stddev"], ddl, NUMBERS[ddl], data)


@pytest.mark.parametrize("ddl", sorted(ORDERED))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_value_of_the_row_where_another_column_is_extreme(ddl: str, data: st.DataObject) -> None:
    schema = Schema.of(f"v int, by {ddl}")
    script = stored(schema, data.draw(changes(st.integers(0, 2), ORDERED[ddl])))
    picks = {"low": hw.min_by("v", "by"), "high": hw.max_by("v", "by"), "least": hw.min("by"), "most": hw.max("by")}
    aggregation = Aggregation(picks, schema, "s", takes_back=True)
    kept = accumulated(aggregation, schema, script, data.draw(st.lists(st.integers(0, 100), max_size=5)))
    for group, (low, high, least, most) in enumerate(results(aggregation, kept)):
        rest = left(script, group)
        assert low in [v for v, by in rest if by is not None and same(by) == same(least)] or (low is least is None)
        assert high in [v for v, by in rest if by is not None and same(by) == same(most)] or (high is most is None)
        assert least == REFERENCE["min"]([by for _, by in rest]) or same(least) == "NaN"


@settings(max_examples=150, deadline=None)
@given(script=changes(WILD), cuts=st.lists(st.integers(0, 100), max_size=5))
def test_sum_of_any_floats_is_as_exact_as_the_rows_that_are_left(script: list[Change], cuts: list[int]) -> None:
    schema = Schema.of("v double")
    aggregation = Aggregation({"x": hw.sum("v"), "y": hw.avg("v"), "z": hw.var("v")}, schema, "s", takes_back=True)
    kept = accumulated(aggregation, schema, script, cuts)
    for group, (total, mean, spread) in enumerate(results(aggregation, kept)):
        rest = [v for (v,) in left(script, group) if v is not None]
        if not rest:
            assert (total, mean, spread) == (None, None, None)
        elif not all(map(math.isfinite, rest)):
            assert same(total) == same(sum(v for v in rest if not math.isfinite(v)))
            assert spread is None if len(rest) < 2 else math.isnan(spread)
        else:
            exact = sum(map(Fraction, rest), Fraction(0))
            assert total == as_float(exact) or math.isclose(total, as_float(exact), rel_tol=2.3e-16)
            if len(rest) > 1:
                middle = exact / len(rest)
                assert spread == as_float(sum((Fraction(v) - middle) ** 2 for v in rest) / (len(rest) - 1))


def as_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@settings(max_examples=100, deadline=None)
@given(script=changes(WILD), q=st.floats(0, 1), cuts=st.lists(st.integers(0, 100), max_size=5))
def test_quantiles_of_what_is_left_are_within_one_percent(script: list[Change], q: float, cuts: list[int]) -> None:
    schema = Schema.of("v double")
    picks = {"one": hw.approx_quantile("v", q), "two": hw.approx_quantile("v", [0, q])}
    aggregation = Aggregation(picks, schema, "s", takes_back=True)
    plain = Aggregation(picks, schema, "s")
    kept = accumulated(aggregation, schema, script, cuts)
    assert kept.equals(accumulated(aggregation, schema, script, []))
    for group, (one, two) in enumerate(results(aggregation, kept)):
        rest = left(script, group)
        want = results(plain, plain.partial(table_of(schema, rest), np.zeros(len(rest), np.int64), 1))[0][0]
        if want is None:
            assert one is two is None
        else:
            assert same(one) == same(want) or math.isclose(one, want, rel_tol=0.0203, abs_tol=5e-322)
            assert same(two[1]) == same(one)


# --- literal rows ---------------------------------------------------------------


def after(aggregate: Aggregate, ddl: str, *changes: tuple[str, Any]) -> Any:
    schema = Schema.of(f"v {ddl}")
    aggregation = Aggregation({"x": aggregate}, schema, "s", takes_back=True)
    table = table_of(schema, [(value,) for _, value in changes])
    adds = np.array([kind == "+" for kind, _ in changes])
    return results(aggregation, aggregation.partial(table, np.zeros(len(changes), np.int64), 1, adds))[0][0]


@pytest.mark.parametrize(
    ("aggregate", "ddl", "rows", "expected"),
    [
        (hw.sum("v"), "bigint", [("+", 5), ("+", 2), ("-", 5)], 2),
        (hw.sum("v"), "bigint", [("+", 5), ("-", 5), ("+", None)], None),
        (hw.sum("v"), "bigint", [("+", -(2**63)), ("-", -(2**63)), ("+", 1)], 1),
        (hw.sum("v"), "double", [("+", 1e300), ("+", 1.0), ("-", 1e300)], 1.0),
        (hw.sum("v"), "double", [("+", math.nan), ("+", math.inf), ("+", 0.5), ("-", math.inf), ("-", math.nan)], 0.5),
        (hw.sum("v"), "double", [("+", 0.1), ("+", 0.2), ("-", 0.1), ("-", 0.2)], None),
        (
            hw.sum("v"),
            "decimal(4,2)",
            [("+", Decimal("1.10")), ("+", Decimal("0.05")), ("-", Decimal("1.10"))],
            Decimal("0.05"),
        ),
        (hw.avg("v"), "decimal(4,2)", [("+", Decimal(1)), ("+", Decimal(2)), ("-", Decimal(1))], Decimal("2.000000")),
        (hw.avg("v"), "int", [("+", 1), ("+", 2), ("+", 6), ("-", 6)], 1.5),
        (hw.var("v"), "double", [("+", 1e9), ("+", 1e9 + 1), ("+", -1e9), ("-", -1e9)], 0.5),
        (hw.max("v"), "int", [("+", 3), ("+", 7), ("-", 7)], 3),
        (hw.max("v"), "int", [("-", 7), ("+", 3), ("+", 7)], 3),
        (hw.first("v"), "string", [("+", "a"), ("+", "b"), ("+", "a"), ("-", "a")], "b"),
        (hw.first_value("v"), "string", [("+", None), ("+", "a"), ("+", "b"), ("-", "a")], "b"),
        (hw.last_value("v"), "string", [("+", "a"), ("+", "b"), ("+", None), ("-", "b")], "a"),
        (hw.last("v"), "string", [("+", "a"), ("+", "b"), ("+", "a"), ("-", "a")], "a"),
        (hw.first("v"), "string", [("+", None), ("+", "b"), ("-", None)], "b"),
        (hw.collect_list("v"), "int", [("+", 1), ("+", 2), ("+", 1), ("-", 1)], [2, 1]),
        (hw.collect_list("v"), "int", [("+", 1), ("-", 2), ("+", 2), ("+", 2)], [1, 2]),
        (hw.collect_list("v"), "array<int>", [("+", [1]), ("+", [1, None]), ("-", [1])], [[1, None]]),
        (hw.collect_set("v"), "int", [("+", 1), ("+", 2), ("+", 1), ("-", 1)], [1, 2]),
        (hw.count_distinct("v"), "int", [("+", 1), ("+", 2), ("+", 1), ("-", 1), ("-", 2)], 1),
        (hw.approx_quantile("v", 1.0), "int", [("+", 1), ("+", 100), ("-", 100)], pytest.approx(1, rel=0.0101)),
    ],
    ids=str,
)
def test_taking_back(aggregate: Aggregate, ddl: str, rows: list[tuple[str, Any]], expected: Any) -> None:
    assert after(aggregate, ddl, *rows) == expected


def test_a_sum_that_overflows_is_an_error_here_too() -> None:
    with pytest.raises(RowError, match="the sum of column 'v' overflows"):
        after(hw.sum("v"), "bigint", ("+", 2**62), ("+", 2**62), ("-", -(2**62)))


def test_what_is_taken_back_is_not_kept_once_it_is_settled() -> None:
    schema = Schema.of("v int")
    aggregation = Aggregation({"x": hw.collect_list("v"), "y": hw.max("v")}, schema, "s", takes_back=True)
    script: list[Change] = [(True, 0, (1,)), (True, 0, (2,)), (False, 0, (1,))]
    kept = aggregation.settle(accumulated(aggregation, schema, script, [1, 2]))
    assert kept.slice(0, 1).to_pylist() == [
        {"x.values": [2], "x.taken": [], "y.values": [2], "y.counts": [1], "@left": 1}
    ]


def test_equal_floats_have_equal_bytes_however_they_came() -> None:
    schema = Schema.of("v double")
    aggregation = Aggregation({"x": hw.sum("v"), "y": hw.var("v")}, schema, "s", takes_back=True)
    one = accumulated(aggregation, schema, [(True, 0, (-0.75,)), (True, 0, (1e-300,))], [])
    script: list[Change] = [(True, 0, (1e308,)), (True, 0, (1e-300,)), (True, 0, (-0.75,)), (False, 0, (1e308,))]
    assert accumulated(aggregation, schema, script, [1, 2, 3]).equals(one)


def test_every_aggregate_takes_rows_back_as_the_table_says() -> None:
    assert {name for name, facts in FACTS.items() if facts.takes_back != "not"} == set(TAKING_BACK)
    with pytest.raises(GraphError, match=r"use hw.count_distinct instead"):
        Aggregation({"x": hw.approx_count_distinct("v")}, Schema.of("v int"), "s", takes_back=True)
