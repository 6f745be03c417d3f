"""Aggregate functions: which kernels compute them, and what is made of their results. The meaning is Flink SQL's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headwater.aggregates import Aggregate as Kernel
from headwater.data.functions.casts import cast
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT, DOUBLE, INT, STRING, Type, array, decimal, text_of, type_of
from headwater.data.schema import Schema
from headwater.sql.bind.scalars import call

Result = Callable[[Sequence[Term]], Term]


@dataclass(frozen=True)
class Needs:
    """What an aggregate is computed of: functions of kernels over its argument, and what is made of what they give."""

    kernels: tuple[str, ...]
    result: Result
    over: Callable[[Type], bool] = lambda _: True
    takes: str = "any value"
    keeps_nulls: bool = False
    """Whether NULLs count too: then the argument of kernels is an item, which is never NULL."""


def _as(dtype: Type) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        made = cast(terms[0], dtype, None)
        assert made is not None
        return made

    return result


def _same(terms: Sequence[Term]) -> Term:
    return terms[0]


def _is_number(dtype: Type) -> bool:
    return dtype.is_number


def _is_ordered(dtype: Type) -> bool:
    return dtype.kind not in ("array", "map", "row", "null")


def _sum_type(of: Type) -> Type:
    return decimal(38, of.scale) if of.is_decimal else of


def _average(of: Type) -> Result:
    def of_integers(terms: Sequence[Term]) -> Term:
        total, count = terms
        return Term(of, f"CAST({total.sql} // nullif({count.sql}, 0) AS {of.duckdb})")

    def of_decimals(terms: Sequence[Term]) -> Term:
        total, count = terms
        known = Term(count.type, f"nullif({count.sql}, 0)")
        made = cast(call("/", total, known), decimal(38, max(6, of.scale)), None)
        assert made is not None
        return made

    return of_integers if of.is_integer else of_decimals


def _population(*, is_root: bool) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        spread, count = (term.sql for term in terms)
        value = f"CASE WHEN {count} = 1 THEN 0.0::DOUBLE ELSE {spread} * ({count} - 1) / {count} END"
        return Term(DOUBLE, f"CASE WHEN {count} = 0 THEN NULL ELSE {f'sqrt({value})' if is_root else value} END")

    return result


def _joined(separator: str) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        items = terms[0].sql
        return Term(
            STRING, f"CASE WHEN len({items}) = 0 THEN NULL ELSE array_to_string({items}, {text_of(separator)}) END"
        )

    return result


def _array(of: Type, *, keeps_nulls: bool) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        items = terms[0].sql
        values = f"list_transform({items}, lambda item: {_of_item(of)})" if keeps_nulls else items
        return Term(array(of), f"CASE WHEN len({items}) = 0 THEN NULL ELSE {values} END")

    return result


def item(of: Term) -> Term:
    """A value, or that there is none, as something that is never NULL: a text where it has one, for such are kept quickly."""
    if _has_text(of.type):
        return Term(STRING, f"coalesce('=' || CAST({of.sql} AS VARCHAR), '')")
    return call("ROW", of)


def _of_item(of: Type) -> str:
    if _has_text(of):
        return f"CASE WHEN item <> '' THEN CAST(substr(item, 2) AS {of.duckdb}) END"
    return "struct_extract(item, 'f0')"


def _has_text(of: Type) -> bool:
    """Whether a value can be made of its text again, and is the same then."""
    return of.is_number or of.is_timestamp or of.kind in ("string", "boolean", "date")


def _counts(of: Type) -> Result:
    """How often there is each value; a map, for there is no type of multisets."""

    def result(terms: Sequence[Term]) -> Term:
        made = Type("map", parts=(of, INT))
        counted = f"list_aggregate({terms[0].sql}, 'histogram')"
        return Term(made, f"coalesce(CAST({counted} AS {made.duckdb}), CAST(MAP {{}} AS {made.duckdb}))")

    return result


def _json(terms: Sequence[Term]) -> Term:
    return Term(STRING, f"CAST(to_json({terms[0].sql}) AS VARCHAR)")


def _is_plain_json(of: Type) -> bool:
    """Whether a value has one text in JSON."""
    return of.is_integer or of.kind in ("string", "boolean")


def _of_set(function: str, dtype: Type) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        return Term(dtype, f"CAST({function}({terms[0].sql}) AS {dtype.duckdb})")

    return result


def _average_of_set(of: Type) -> Result:
    def result(terms: Sequence[Term]) -> Term:
        items = terms[0].sql
        if of.is_approximate:
            return Term(of, f"CAST(list_avg({items}) AS {of.duckdb})")
        total = Term(
            BIGINT if of.is_integer else _sum_type(of),
            f"CAST(list_sum({items}) AS {'BIGINT' if of.is_integer else _sum_type(of).duckdb})",
        )
        return _average(of)([total, Term(BIGINT, f"CAST(len({items}) AS BIGINT)")])

    return result


def needs(
    name: str, of: Type | None, *, is_distinct: bool, separator: str = ",", ignores_nulls: bool = False
) -> Needs | None:
    """How the aggregate of a name over values of a type is computed; None if there is none of that name."""
    if name == "COUNT":
        return Needs(("count_distinct" if is_distinct and of is not None else "count",), _same)
    if of is None or name not in NAMES:
        return None
    kernel = "collect_set" if is_distinct else "collect_list"
    if name == "ARRAY_AGG":
        return Needs((kernel,), _array(of, keeps_nulls=not ignores_nulls), keeps_nulls=not ignores_nulls)
    if name == "COLLECT":
        return Needs((kernel,), _counts(of), _is_ordered, "a value with an order")
    if name == "JSON_ARRAYAGG":
        return Needs((kernel,), _json, _is_plain_json, "a whole number, a string or a boolean")
    if name == "LISTAGG":
        return Needs((kernel,), _joined(separator), lambda t: t.kind == "string", "a string")
    if is_distinct and name in _OF_SETS:
        return Needs(("collect_set",), _OF_SETS[name](of), _is_number, "a number")
    return _PLAIN[name](of)


_OF_SETS: Final[dict[str, Callable[[Type], Result]]] = {
    "SUM": lambda of: _of_set("list_sum", _sum_type(of)),
    "AVG": _average_of_set,
}
"""Over different values only; MIN and MAX do not mind, and of the others none is over sets."""
_PLAIN: Final[dict[str, Callable[[Type], Needs]]] = {
    "SUM": lambda of: Needs(("sum",), _as(_sum_type(of)), _is_number, "a number"),
    "AVG": lambda of: (
        Needs(("avg",), _as(of), _is_number, "a number")
        if of.is_approximate
        else Needs(("sum", "count"), _average(of), _is_number, "a number")
    ),
    "MIN": lambda _: Needs(("min",), _same, _is_ordered, "a value with an order"),
    "MAX": lambda _: Needs(("max",), _same, _is_ordered, "a value with an order"),
    "FIRST_VALUE": lambda _: Needs(("first_value",), _same),
    "LAST_VALUE": lambda _: Needs(("last_value",), _same),
    "STDDEV_SAMP": lambda _: Needs(("stddev",), _as(DOUBLE), _is_number, "a number"),
    "VAR_SAMP": lambda _: Needs(("var",), _as(DOUBLE), _is_number, "a number"),
    "VARIANCE": lambda _: Needs(("var",), _as(DOUBLE), _is_number, "a number"),
    "STDDEV_POP": lambda _: Needs(("var", "count"), _population(is_root=True), _is_number, "a number"),
    "VAR_POP": lambda _: Needs(("var", "count"), _population(is_root=False), _is_number, "a number"),
    "APPROX_COUNT_DISTINCT": lambda _: Needs(("approx_count_distinct",), _same),
}
NAMES: Final = frozenset({"COUNT", "LISTAGG", "ARRAY_AGG", "COLLECT", "JSON_ARRAYAGG", *_PLAIN})
"""The aggregate functions of SQL."""


def kernel_of(function: str, column: str | None, of: Type | None) -> tuple[Kernel, Type]:
    """A kernel over a column, and the type of what it gives."""
    kernel = Kernel(function, column)
    if column is None:
        return kernel, BIGINT
    assert of is not None
    schema = Schema(pa.schema([pa.field(column, of.arrow)]))
    found = type_of(kernel.result_type(schema, "sql"))
    if function in ("min", "max", "first_value", "last_value"):
        return kernel, of  # with the places of its times
    return kernel, array(of) if function.startswith("collect") else found
