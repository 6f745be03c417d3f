"""Aggregates against plain Python, on any types and nulls, and however the rows are cut."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater import aggregates as hw
from headwater.aggregates import Aggregate, result_fields
from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError, HeadwaterError, RowError, SchemaError
from headwater.operators.aggregation import Aggregation

# --- values of every type -----------------------------------------------------

WILD = st.floats(allow_nan=True) | st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5])
TAME = st.floats(-1e6, 1e6, allow_subnormal=False)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10 ** min(precision - 3, 31) - 1
    return st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-scale, Context(prec=50)))


NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-128, 127),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**45), 2**45),
    "float": st.floats(-1000, 1000, width=32),
    "double": TAME,
    "decimal(10,2)": decimals(10, 2),
    "decimal(38,4)": decimals(38, 4),
}
ORDERED: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": WILD,
    "boolean": st.booleans(),
    "string": st.text("aé\U0001f600z", max_size=3),
    "binary": st.binary(max_size=2),
    "date": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)),
    "timestamp_ntz": st.datetimes(),
    "interval": st.timedeltas(dt.timedelta(-9), dt.timedelta(9)),
}
STRUCTS: dict[str, st.SearchStrategy[Any]] = {
    "struct<a:int,b:double>": st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 2), "b": st.none() | st.sampled_from([0.0, -0.0, 1.0, math.nan])}
    ),
    "struct<a:struct<b:string>>": st.fixed_dictionaries(
        {"a": st.none() | st.fixed_dictionaries({"b": st.none() | st.sampled_from("xy")})}
    ),
}
EVERY: dict[str, st.SearchStrategy[Any]] = {
    **ORDERED,
    **STRUCTS,
    "array<int>": st.lists(st.none() | st.integers(0, 3), max_size=3),
    "map<string,int>": st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=1),
    "void": st.none(),
}

# --- the same in plain Python -------------------------------------------------


def same(value: Any) -> Any:
    """A form of a value in which Spark's equality is Python's: one NaN, one zero."""
    if isinstance(value, dict):
        return tuple(same(v) for v in value.values())
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def compare(a: Any, b: Any) -> int:
    if isinstance(a, float):
        a, b = (math.isnan(a), 0 if math.isnan(a) else a), (math.isnan(b), 0 if math.isnan(b) else b)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def extreme(rows: list[tuple[Any, Any]], sign: int) -> Any:
    """The value of the first row whose second item is smallest (1) or largest (-1)."""
    rows = [row for row in rows if row[1] is not None]
    order = cmp_to_key(compare)
    return sorted(rows, key=lambda row: order(row[1]), reverse=sign < 0)[0][0] if rows else None


def distinct(values: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in known(values):
        found.setdefault(same(value), value)
    return list(found.values())


def total(values: list[Any]) -> Any:
    if not known(values):
        return None
    if isinstance(known(values)[0], float):
        return math.fsum(known(values))
    start = known(values)[0]
    for value in known(values)[1:]:
        start = Context(prec=60).add(start, value) if isinstance(start, Decimal) else start + value
    return start


def average(values: list[Any]) -> Any:
    if not known(values):
        return None
    whole, count = total(values), len(known(values))
    if isinstance(whole, Decimal):
        places = Decimal(1).scaleb(whole.as_tuple().exponent - 4)
        return Context(prec=80).divide(whole, count).quantize(places, ROUND_HALF_UP, Context(prec=80))
    return whole / count


def spread(values: list[Any]) -> Any:
    return statistics.variance([float(v) for v in known(values)]) if len(known(values)) > 1 else None


REFERENCE: dict[str, Callable[[list[Any]], Any]] = {
    "count": lambda values: len(known(values)),
    "sum": total,
    "avg": average,
    "var": spread,
    "stddev": lambda values: None if spread(values) is None else math.sqrt(spread(values)),
    "min": lambda values: extreme([(v, v) for v in values], 1),
    "max": lambda values: extreme([(v, v) for v in reversed(values)], -1),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "first_value": lambda values: next(iter(known(values)), None),
    "last_value": lambda values: next(reversed(known(values)), None),
    "collect_list": known,
    "collect_set": distinct,
    "count_distinct": lambda values: len(distinct(values)),
    "approx_count_distinct": lambda values: len(distinct(values)),
}


def alike(got: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(got, float) and not math.isnan(expected):
        return got == expected or math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-6)
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(alike, got, expected))
    return bool(same(got) == same(expected))


# --- running it ---------------------------------------------------------------


def table_of(schema: Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema.arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def at_once(aggregation: Aggregation, table: pa.Table, groups: list[int]) -> pa.Table:
    return aggregation.partial(table, np.array(groups, np.int64), max(groups) + 1)


def in_pieces(aggregation: Aggregation, table: pa.Table, groups: list[int], cuts: list[int]) -> pa.Table:
    """Each piece by itself, with its groups numbered anew; half of the pieces merged first, then all, and no rows."""
    edges = sorted({0, len(groups), *(cut % len(groups) for cut in cuts)})
    count = max(groups) + 1
    merged, merged_groups = aggregation.empty(), np.array([0])
    for start, end in pairwise(edges):
        names, inside = np.unique(np.array(groups[start:end]), return_inverse=True)
        piece = aggregation.partial(table.slice(start, end - start), inside.astype(np.int64), len(names))
        merged, merged_groups = pa.concat_tables([merged, piece]), np.concatenate([merged_groups, names])
        if start % 2:
            names, inside = np.unique(merged_groups, return_inverse=True)
            merged, merged_groups = aggregation.merge(merged, inside.astype(np.int64), len(names)), names
    return aggregation.merge(merged, merged_groups.astype(np.int64), count)


def results(aggregation: Aggregation, partials: pa.Table) -> list[tuple[Any, ...]]:
    arrays = aggregation.result(partials)
    for array, field in zip(arrays, aggregation.results, strict=True):
        assert array.type == field.type
        assert field.nullable or not array.null_count
        array.validate(full=True)
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


def single(aggregate: Aggregate, ddl: str, values: list[Any]) -> Any:
    schema = Schema.of(f"v {ddl}")
    aggregation = Aggregation({"x": aggregate}, schema, "s")
    return results(aggregation, at_once(aggregation, table_of(schema, [(v,) for v in values]), [0] * len(values)))[0][0]


def dense(groups: list[int]) -> list[int]:
    return np.unique(np.array(groups), return_inverse=True)[1].tolist()  # type: ignore[no-any-return]


def check(functions: list[str], ddl: str, data: st.DataObject) -> None:
    schema = Schema.of(f"v {ddl}")
    wild = EVERY[ddl] if "sum" not in functions and "var" not in functions else NUMBERS[ddl]
    values = data.draw(st.lists(st.none() | wild, min_size=1))
    groups = dense(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))))
    cuts = data.draw(st.lists(st.integers(0, 100), max_size=5))
    aggregation = Aggregation({f: getattr(hw, f)("v") for f in functions}, schema, "s")
    table = table_of(schema, [(v,) for v in values])
    values = table["v"].to_pylist()
    expected = [
        tuple(REFERENCE[f]([v for v, at in zip(values, groups, strict=True) if at == g]) for f in functions)
        for g in range(max(groups) + 1)
    ]
    for partials in (at_once(aggregation, table, groups), in_pieces(aggregation, table, groups, cuts)):
        assert partials.schema == pa.schema(aggregation.fields)
        found = results(aggregation, partials)
        for row, wanted in zip(found, expected, strict=True):
            for function, got, want in zip(functions, row, wanted, strict=True):
                if function == "approx_count_distinct":
                    assert got == pytest.approx(want, rel=0.1, abs=1)
                else:
                    assert alike(got, want), (function, got, want)


@pytest.mark.parametrize("ddl", sorted(EVERY))
@examples(20)
@given(data=st.data())
def test_any_type_can_be_counted_and_kept(ddl: str, data: st.DataObject) -> None:
    check(["count", "first", "last", "first_value", "last_value", "collect_list"], ddl, data)


@pytest.mark.parametrize("ddl", sorted(ORDERED | STRUCTS))
@examples(20)
@given(data=st.data())
def test_values_that_compare_can_be_told_apart(ddl: str, data: st.DataObject) -> None:
    check(["collect_set", "count_distinct", "approx_count_distinct"], ddl, data)


@pytest.mark.parametrize("ddl", sorted(ORDERED))
@examples(20)
@given(data=st.data())
def test_smallest_and_largest(ddl: str, data: st.DataObject) -> None:
    check(["min", "max"], ddl, data)


@pytest.mark.parametrize("ddl", sorted(NUMBERS))
@examples(20)
@given(data=st.data())
def test_sum_and_average(ddl: str, data: st.DataObject) -> None:
    check(["sum", "avg"], ddl, data)


@examples(50)
@given(values=st.lists(st.integers(-(2**57), 2**57), min_size=1), cut=st.integers(0, 50))
def test_sum_of_integers_is_exact_where_a_sum_of_floats_is_not(values: list[int], cut: int) -> None:
    schema = Schema.of("v bigint")
    aggregation = Aggregation({"x": hw.sum("v")}, schema, "s")
    pieces = in_pieces(aggregation, table_of(schema, [(v,) for v in values]), [0] * len(values), [cut])
    assert results(aggregation, pieces) == [(sum(values),)]


@pytest.mark.parametrize("ddl", ["tinyint", "float", "double", "decimal(10,2)"])
@examples(20)
@given(data=st.data())
def test_variance_and_deviation(ddl: str, data: st.DataObject) -> None:
    check(["var", "stddev"], ddl, data)


@pytest.mark.parametrize("ddl", sorted(ORDERED))
@examples(20)
@given(data=st.data())
def test_value_of_the_row_where_another_column_is_extreme(ddl: str, data: st.DataObject) -> None:
    schema = Schema.of(f"v int, by {ddl}")
    bys = data.draw(st.lists(st.none() | ORDERED[ddl], min_size=1))
    rows = list(enumerate(bys))
    groups = dense(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    cuts = data.draw(st.lists(st.integers(0, 100), max_size=5))
    aggregation = Aggregation({"low": hw.min_by("v", "by"), "high": hw.max_by("v", "by")}, schema, "s")
    table = table_of(schema, rows)
    stored = list(zip(table["v"].to_pylist(), table["by"].to_pylist(), strict=True))
    for partials in (at_once(aggregation, table, groups), in_pieces(aggregation, table, groups, cuts)):
        for g, (low, high) in enumerate(results(aggregation, partials)):
            own = [row for row, at in zip(stored, groups, strict=True) if at == g]
            assert low == extreme(own, 1)
            assert high == extreme(own, -1)


@examples(150)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.none() | WILD), min_size=1),
    q=st.floats(0, 1),
    cuts=st.lists(st.integers(0, 100), max_size=5),
)
def test_quantiles_are_within_one_percent(rows: list[tuple[int, float | None]], q: float, cuts: list[int]) -> None:
    schema = Schema.of("v double")
    groups = dense([g for g, _ in rows])
    aggregation = Aggregation({"one": hw.approx_quantile("v", q), "two": hw.approx_quantile("v", [0, q])}, schema, "s")
    table = table_of(schema, [(v,) for _, v in rows])
    whole = at_once(aggregation, table, groups)
    assert in_pieces(aggregation, table, groups, cuts).equals(whole)
    for g, (one, two) in enumerate(results(aggregation, whole)):
        values = sorted(known([v for at, (_, v) in zip(groups, rows, strict=True) if at == g]), key=cmp_to_key(compare))
        if not values:
            assert one is None
            assert two is None
            continue
        want = values[max(math.ceil(q * len(values) - 1e-9), 1) - 1]
        assert same(one) == same(want) or math.isclose(one, want, rel_tol=0.0101, abs_tol=5e-322)
        assert same(two[1]) == same(one)


# --- what Spark says of the edges ---------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (hw.count(), 0),
        (hw.count("v"), 0),
        (hw.sum("v"), None),
        (hw.avg("v"), None),
        (hw.var("v"), None),
        (hw.min("v"), None),
        (hw.first("v"), None),
        (hw.max_by("v", "v"), None),
        (hw.collect_list("v"), []),
        (hw.collect_set("v"), []),
        (hw.count_distinct("v"), 0),
        (hw.approx_count_distinct("v"), 0),
        (hw.approx_quantile("v", 0.5), None),
        (hw.approx_quantile("v", [0.5]), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("ddl", ["bigint", "double", "decimal(38,2)"])
def test_no_rows_give_nulls_zeros_and_empty_lists(aggregate: Aggregate, expected: Any, ddl: str) -> None:
    aggregation = Aggregation({"x": aggregate}, Schema.of(f"v {ddl}"), "s")
    empty = aggregation.empty()
    assert empty.num_rows == 1
    assert results(aggregation, empty) == [(expected,)]
    merged = aggregation.merge(pa.concat_tables([empty] * 3), np.array([0, 0, 0]), 1)
    assert merged.equals(empty)


def test_no_groups_give_no_rows() -> None:
    schema = Schema.of("v double, s string")
    every = [hw.sum, hw.avg, hw.var, hw.min, hw.last, hw.collect_set, hw.approx_count_distinct]
    named = {str(i): aggregate("v") for i, aggregate in enumerate(every)}
    aggregation = Aggregation({**named, "q": hw.approx_quantile("v", 0.5), "s": hw.min("s")}, schema, "s")
    none = np.empty(0, np.int64)
    partials = aggregation.partial(schema.arrow.empty_table(), none, 0)
    assert partials.num_rows == 0
    assert aggregation.merge(partials, none, 0).num_rows == 0
    assert results(aggregation, partials) == []


def test_a_null_that_arrived_first_is_first_and_one_that_arrived_last_is_last() -> None:
    assert single(hw.first("v"), "int", [None, 1]) is None
    assert single(hw.last("v"), "int", [1, None]) is None
    assert single(hw.first_value("v"), "int", [None, 1, 2]) == 1
    assert single(hw.last_value("v"), "int", [1, 2, None]) == 2
    assert single(hw.last_value("v"), "int", [None]) is None


def test_of_equal_rows_the_first_to_arrive_stays_also_across_partials() -> None:
    schema = Schema.of("v string, by int")
    aggregation = Aggregation({"x": hw.max_by("v", "by"), "y": hw.min_by("v", "by")}, schema, "s")
    pieces = [table_of(schema, [("a", 1), ("b", 1)]), table_of(schema, [("c", 1)])]
    partials = pa.concat_tables([at_once(aggregation, piece, [0] * len(piece)) for piece in pieces])
    assert results(aggregation, aggregation.merge(partials, np.array([0, 0]), 1)) == [("a", "a")]


def test_value_may_be_null_where_the_other_column_is_extreme() -> None:
    schema = Schema.of("v int, by int")
    aggregation = Aggregation({"x": hw.max_by("v", "by")}, schema, "s")
    partials = at_once(aggregation, table_of(schema, [(1, 1), (None, 2), (3, None)]), [0, 0, 0])
    assert results(aggregation, partials) == [(None,)]


def test_one_value_has_no_variance() -> None:
    assert single(hw.var("v"), "double", [1.0]) is None
    assert single(hw.stddev("v"), "double", [1.0, None]) is None


def test_variance_stays_exact_when_the_mean_is_large() -> None:
    schema = Schema.of("v double")
    values = [1e9 + x for x in (4.0, 7.0, 13.0, 16.0)] * 50
    aggregation = Aggregation({"x": hw.var("v")}, schema, "s")
    table = table_of(schema, [(v,) for v in values])
    pieces = in_pieces(aggregation, table, [0] * len(values), [3, 50, 51, 120])
    for partials, error in ((at_once(aggregation, table, [0] * len(values)), 1e-12), (pieces, 1e-8)):
        assert results(aggregation, partials)[0][0] == pytest.approx(statistics.variance(values), rel=error)


def test_infinite_values_have_a_variance_that_is_no_number() -> None:
    assert math.isnan(single(hw.var("v"), "double", [math.inf, 1.0]))


def test_mean_of_decimals_is_rounded_half_up() -> None:
    assert single(hw.avg("v"), "decimal(3,0)", [Decimal(1), Decimal(1), Decimal(0)]) == Decimal("0.6667")
    sixteenth = [Decimal(1)] + [Decimal(0)] * 31
    assert single(hw.avg("v"), "decimal(3,0)", sixteenth) == Decimal("0.0313")  # 0.03125
    assert single(hw.avg("v"), "decimal(3,0)", [-v for v in sixteenth]) == Decimal("-0.0313")


def test_sum_of_large_integers_is_exact_up_to_the_last_one_that_fits() -> None:
    most = 2**63 - 1
    assert single(hw.sum("v"), "bigint", [most - 5, 5]) == most
    assert single(hw.sum("v"), "bigint", [most, most, -most, -most, -1, -most]) == -most - 1
    assert single(hw.sum("v"), "bigint", [2**62, -(2**62), -1]) == -1


@pytest.mark.parametrize(
    ("ddl", "values", "total"),
    [
        ("bigint", [2**63 - 1, 1], 2**63),
        ("bigint", [-(2**63), -1], -(2**63) - 1),
        ("decimal(38,0)", [Decimal("9" * 38), Decimal(1)], 10**38),
    ],
)
def test_sum_that_overflows_is_an_error_that_names_step_and_column(ddl: str, values: list[Any], total: Any) -> None:
    with pytest.raises(RowError, match=r"step 's', field 'v': .*the sum of column 'v' overflows; cast") as error:
        single(hw.sum("v"), ddl, values)
    assert str(total) in str(error.value)


def test_mean_of_decimals_that_overflows_is_an_error() -> None:
    with pytest.raises(RowError, match=r"step 's', field 'v': .* does not fit decimal\(38,6\): cast"):
        single(hw.avg("v"), "decimal(38,2)", [Decimal("9" * 36)])


@pytest.mark.parametrize("count", [1, 10, 1_000, 4_000, 10_000, 100_000])
@pytest.mark.parametrize("ddl", ["bigint", "string", "double"])
def test_estimate_of_distinct_values_is_close(count: int, ddl: str) -> None:
    schema = Schema.of(f"v {ddl}")
    table = pa.table({"v": pa.array(np.arange(count)).cast(schema.field("v").type)})
    table = pa.concat_tables([table, table]).combine_chunks()
    aggregation = Aggregation({"x": hw.approx_count_distinct("v")}, schema, "s")
    whole = at_once(aggregation, table, [0] * len(table))
    assert in_pieces(aggregation, table, [0] * len(table), [count // 3, count]).equals(whole)
    assert results(aggregation, whole)[0][0] == pytest.approx(count, rel=0.07, abs=0.5)


def test_quantile_of_a_constant_is_the_constant() -> None:
    assert single(hw.approx_quantile("v", [0, 0.5, 1]), "int", [7] * 5) == [7.0, 7.0, 7.0]
    assert single(hw.approx_quantile("v", 0.5), "decimal(5,2)", [Decimal("1.25")]) == 1.25


def test_equal_input_gives_equal_bytes() -> None:
    schema = Schema.of("v double, s string")
    rng = np.random.default_rng(7)
    table = pa.table({"v": rng.normal(size=5000), "s": rng.integers(0, 50, 5000).astype(str)}, schema=schema.arrow)
    groups = dense(rng.integers(0, 300, 5000).tolist())
    each = (hw.sum, hw.avg, hw.stddev, hw.max, hw.collect_set, hw.count_distinct, hw.approx_count_distinct)
    named = {f"{function.__name__}_{c}": function(c) for function in each[4:] for c in "vs"}
    aggregates = {**{f.__name__: f("v") for f in each[:4]}, **named, "q": hw.approx_quantile("v", [0.1, 0.9])}
    written = set()
    for _ in range(3):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema(Aggregation(aggregates, schema, "s").fields)) as writer:
            writer.write_table(at_once(Aggregation(aggregates, schema, "s"), table, groups))
        written.add(sink.getvalue().to_pybytes())
    assert len(written) == 1


def test_stored_sketches_do_not_change_their_form() -> None:
    schema = Schema.of("s string, v double")
    aggregates = {"n": hw.approx_count_distinct("s"), "q": hw.approx_quantile("v", 0.5)}
    aggregation = Aggregation(aggregates, schema, "s")
    rows = [("a", -1.0), ("b", 0.0), ("a", 100.0), ("c", 100.5), (None, math.inf), (None, math.nan)]
    stored = at_once(aggregation, table_of(schema, rows), [0] * len(rows)).to_pylist()[0]
    assert stored == {
        "n.registers": [37314, 52673, 118081],
        "q.buckets": [-65536, 0, 65767, 125536, 125537],
        "q.counts": [1, 1, 2, 1, 1],
        "q.low": -1.0,
        "q.high": math.inf,
    }


def test_partials_are_read_from_chunks_and_slices() -> None:
    schema = Schema.of("v int")
    aggregation = Aggregation(
        {"l": hw.collect_list("v"), "m": hw.approx_quantile("v", 1), "n": hw.count("v")}, schema, "s"
    )
    partials = at_once(aggregation, table_of(schema, [(1,), (2,), (None,), (3,)]), [0, 1, 2, 3])
    chunks = pa.concat_tables([partials.slice(1, 1), partials.slice(2, 2)])
    assert results(aggregation, chunks) == [([2], 2.0, 1), ([], None, 0), ([3], 3.0, 1)]
    assert results(aggregation, aggregation.merge(chunks, np.array([0, 0, 0]), 1)) == [([2, 3], 3.0, 2)]


# --- types and errors ---------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "ddl", "expected"),
    [
        (hw.count(), "string", "bigint"),
        (hw.count("v"), "map<string,int>", "bigint"),
        (hw.sum("v"), "tinyint", "bigint"),
        (hw.sum("v"), "float", "double"),
        (hw.sum("v"), "decimal(10,2)", "decimal(20,2)"),
        (hw.sum("v"), "decimal(35,2)", "decimal(38,2)"),
        (hw.avg("v"), "int", "double"),
        (hw.avg("v"), "decimal(10,2)", "decimal(14,6)"),
        (hw.avg("v"), "decimal(38,36)", "decimal(38,38)"),
        (hw.stddev("v"), "decimal(10,2)", "double"),
        (hw.var("v"), "int", "double"),
        (hw.min("v"), "date", "date"),
        (hw.max("v"), "float", "float"),
        (hw.first("v"), "map<string,int>", "map<string,int>"),
        (hw.min_by("v", "v"), "timestamp", "timestamp"),
        (hw.collect_list("v"), "array<int>", "array<array<int>>"),
        (hw.collect_set("v"), "string", "array<string>"),
        (hw.count_distinct("v"), "string", "bigint"),
        (hw.approx_count_distinct("v"), "struct<a:int>", "bigint"),
        (hw.approx_quantile("v", 0.5), "int", "double"),
        (hw.approx_quantile("v", [0.5]), "decimal(10,2)", "array<double>"),
    ],
    ids=str,
)
def test_result_has_the_type_that_spark_gives(aggregate: Aggregate, ddl: str, expected: str) -> None:
    schema = Schema.of(f"v {ddl}")
    assert type_ddl(aggregate.result_type(schema, "s")) == expected
    aggregation = Aggregation({"x": aggregate}, schema, "s")
    assert aggregation.results == result_fields({"x": aggregate}, schema, "s")
    assert aggregation.results[0].nullable == (aggregate.function not in NOT_NULL)
    for field in aggregation.fields:
        assert Schema.of(Schema(pa.schema([field])).ddl()).arrow == pa.schema([field])


NOT_NULL = {"count", "count_distinct", "approx_count_distinct", "collect_list", "collect_set"}


@pytest.mark.parametrize(
    ("aggregate", "ddl", "message"),
    [
        (hw.sum("v"), "string", "step 's' needs a number as 'v' in hw.sum('v'); got 'string'; cast"),
        (hw.avg("v"), "boolean", "step 's' needs a number as 'v' in hw.avg('v'); got 'boolean'; cast"),
        (hw.var("v"), "date", "needs a number"),
        (hw.approx_quantile("v", 0.5), "timestamp", "needs a number"),
        (
            hw.min("v"),
            "map<string,int>",
            "needs values with an order as 'v' in hw.min('v'); got 'map<string,int>'; use",
        ),
        (hw.max("v"), "struct<a:int>", "needs values with an order"),
        (hw.max_by("v", "v"), "array<int>", "needs values with an order as 'v' in hw.max_by('v', 'v')"),
        (hw.count_distinct("v"), "array<int>", "needs values that compare"),
        (hw.collect_set("v"), "struct<a:map<string,int>>", "needs values that compare"),
        (hw.approx_count_distinct("v"), "void", "needs values that compare"),
        (hw.approx_quantile("v", 1.5), "int", "needs quantiles from 0 to 1 in hw.approx_quantile('v', 1.5); got 1.5; "),
        (hw.approx_quantile("v", [0.5, -1]), "int", "got -1"),
        (hw.approx_quantile("v", []), "int", "needs quantiles from 0 to 1"),
        (hw.approx_quantile("v", "0.5"), "int", "got '0.5'"),
        (hw.sum(None), "int", "needs a column's name in hw.sum(); got None; write it as in hw.sum('amount')"),
        (hw.count(5), "int", "needs a column's name"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_type_is_an_error_when_the_graph_is_built(aggregate: Aggregate, ddl: str, message: str) -> None:
    with pytest.raises(GraphError) as error:
        aggregate.result_type(Schema.of(f"v {ddl}"), "s")
    assert message in str(error.value)
    assert "step 's'" in str(error.value)


@pytest.mark.parametrize("aggregate", [hw.sum("w"), hw.count("w"), hw.max_by("w", "v"), hw.max_by("v", "w")], ids=str)
def test_unknown_column_is_an_error_that_lists_the_known(aggregate: Aggregate) -> None:
    with pytest.raises(SchemaError, match="step 's': there is no field 'w'; the fields are v"):
        aggregate.result_type(Schema.of("v int"), "s")


@pytest.mark.parametrize("named", [{}, {"__x": hw.count()}, {"x": "sum"}], ids=["none", "reserved", "no aggregate"])
def test_aggregates_need_names_and_must_be_aggregates(named: dict[str, Any]) -> None:
    with pytest.raises(HeadwaterError):
        Aggregation(named, Schema.of("v int"), "s")
