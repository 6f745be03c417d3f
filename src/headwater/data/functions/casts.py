"""Casts: those that users write, and those that are made where a function takes a wider type than it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from headwater.data.functions.terms import Term
from headwater.data.functions.types import APPROXIMATE, BIGINT, INT, INTEGERS, Type, text_of

_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FRACTIONS: Final = {0: "", 3: ".%g", 6: ".%f"}
_INTEGER_TEXT: Final = r"^[\s]*([+-]?[0-9]+)(?:\.[0-9]*)?[\s]*$"
_DATE_TEXT: Final = r"^\s*([0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2})\s*(?: .*)?$"
_BOOLEAN_TEXTS: Final = (("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0"))


def converted(term: Term, target: Type) -> Term:
    """The value as one of a type that holds it: what Flink SQL casts by itself."""
    if term.type == target:
        return term
    if term.type.kind == "string" and target.is_time:
        return Term(target, _string_to_time(_Casting(term.sql, term.type, target, is_trying=False)))
    if term.type.is_timestamp and term.type.kind == target.kind:
        return replace(term, type=target)
    if term.type.is_time:
        return replace(term, type=target, sql=_between_times(_Casting(term.sql, term.type, target, is_trying=False)))
    if term.type.is_null or term.type.is_number:
        return replace(term, type=target, sql=f"CAST({term.sql} AS {target.duckdb})")
    if term.type.kind == "array":
        item = converted(Term(term.type.item, "__item"), target.item)
        sql = term.sql if item.sql == "__item" else f"list_transform({term.sql}, lambda __item: {item.sql})"
        return Term(target, sql)
    if term.type.kind == "map":
        key, value = (
            converted(Term(p, f"__pair.{n}"), t)
            for p, n, t in zip(term.type.parts, ("key", "value"), target.parts, strict=True)
        )
        pairs = f"list_transform(map_entries({term.sql}), lambda __pair: {{'key': {key.sql}, 'value': {value.sql}}})"
        return Term(target, f"map_from_entries({pairs})")
    return replace(term, type=target, sql=f"CAST({term.sql} AS {target.duckdb})")


def cast(
    term: Term, target: Type, length: int | None, *, is_padded: bool = False, is_trying: bool = False
) -> Term | None:
    """`CAST(term AS target)`, or `TRY_CAST`, which gives NULL where the other fails; None if there is no such cast.

    Strings may have a `length`, to which longer ones are cut, and shorter ones padded if they are CHAR.
    """
    maker = _maker(term.type, target)
    if maker is None or (maker is _between_arrays and (is_trying or _maker(term.type.item, target.item) is None)):
        return None
    sql = maker(_Casting(term.sql, term.type, target, is_trying))
    if length is not None:
        sql = f"left({sql}, {length})"
        sql = f"rpad({sql}, {length}, ' ')" if is_padded else sql
    return Term(target, sql)


class _Casting(NamedTuple):
    """A cast that is being written: the text and type of the value, the type it becomes, whether it may fail."""

    sql: str
    source: Type
    target: Type
    is_trying: bool

    @property
    def how(self) -> str:
        return "TRY_CAST" if self.is_trying else "CAST"

    @property
    def failing(self) -> str:
        """What stands where the value cannot be cast."""
        if self.is_trying:
            return "NULL"
        return f"error({text_of('cannot read ')} || {self.sql} || {text_of(f' as {self.target}')})"


_Maker = Callable[[_Casting], str]


def _maker(source: Type, target: Type) -> _Maker | None:
    if source == target or source.is_null:
        return _plain
    if target.kind == "string":
        return _TO_STRING.get("number" if source.is_exact else source.kind)
    if source.kind == "string":
        return _FROM_STRING.get(
            "integer" if target.is_integer else "approximate" if target.is_approximate else target.kind
        )
    if target.is_integer:
        return _TO_INTEGER.get(
            "integer" if source.is_integer else "approximate" if source.is_approximate else source.kind
        )
    if target.is_approximate:
        return _plain if source.is_number or source.kind == "boolean" else None
    if target.is_decimal:
        return _to_decimal if source.is_number or source.kind == "boolean" else None
    if target.kind == "boolean":
        return _number_to_boolean if source.is_number else None
    if target.is_time and source.is_time:
        return _between_times
    if source.kind == target.kind == "array":
        return _between_arrays
    return None


def _plain(given: _Casting) -> str:
    return f"CAST({given.sql} AS {given.target.duckdb})"


def _between_integers(given: _Casting) -> str:
    if INTEGERS.index(given.source.kind) <= INTEGERS.index(given.target.kind):
        return _plain(given)
    bits = _BITS[given.target.kind]
    low, high, mask = -(1 << bits - 1), (1 << bits - 1) - 1, (1 << bits) - 1
    wrapped = f"(CAST({given.sql} AS BIGINT) & {mask})"
    return (
        f"CASE WHEN {given.sql} BETWEEN {low} AND {high} THEN CAST({given.sql} AS {given.target.duckdb}) "
        f"WHEN {wrapped} > {high} THEN CAST({wrapped} - {mask + 1} AS {given.target.duckdb}) "
        f"ELSE CAST({wrapped} AS {given.target.duckdb}) END"
    )


def _approximate_to_integer(given: _Casting) -> str:
    if given.target.kind in ("tinyint", "smallint"):
        inner = _approximate_to_integer(given._replace(target=INT))
        return _between_integers(given._replace(sql=f"({inner})", source=INT))
    bits = _BITS[given.target.kind]
    high = (1 << bits - 1) - 1
    return (
        f"CASE WHEN isnan({given.sql}) THEN 0 WHEN {given.sql} >= {float(high)!r}::DOUBLE THEN {high} "
        f"WHEN {given.sql} <= {float(-high - 1)!r}::DOUBLE THEN {-high - 1} "
        f"ELSE CAST(trunc({given.sql}) AS {given.target.duckdb}) END"
    )


def _decimal_to_integer(given: _Casting) -> str:
    whole = f"trunc({given.sql})"
    if given.source.precision - given.source.scale < len(str(1 << _BITS[given.target.kind] - 1)):
        return f"CAST({whole} AS {given.target.duckdb})"
    if given.target.kind == "bigint":
        return f"{given.how}({whole} AS BIGINT)"
    return _between_integers(given._replace(sql=f"CAST({whole} AS BIGINT)", source=BIGINT))


def _to_decimal(given: _Casting) -> str:
    """What has too many digits is NULL, in Flink also without TRY_."""
    if given.source.kind in APPROXIMATE:
        found = f"TRY_CAST({given.sql} AS {given.target.duckdb})"
        return (
            found if given.is_trying else f"CASE WHEN NOT isfinite({given.sql}) THEN {given.failing} ELSE {found} END"
        )
    exact = given.source.digits if given.source.is_exact else Type("decimal", 1, 0)
    fits = exact.precision - exact.scale < given.target.precision - given.target.scale or (
        exact.scale <= given.target.scale
        and exact.precision - exact.scale <= given.target.precision - given.target.scale
    )
    whole = f"CAST({given.sql} AS TINYINT)" if given.source.kind == "boolean" else given.sql
    return f"{'CAST' if fits else 'TRY_CAST'}({whole} AS {given.target.duckdb})"


def _number_to_boolean(given: _Casting) -> str:
    return f"({given.sql} <> 0)"


def _between_times(given: _Casting) -> str:
    made = given.sql
    if given.source.kind != given.target.kind:
        plain = in_utc(given.sql, given.source)
        kind = "DATE" if given.target.kind == "date" else "TIMESTAMP"
        made = of_utc(
            plain if given.source.is_timestamp and kind == "TIMESTAMP" else f"CAST({plain} AS {kind})", given.target
        )
    if given.source.is_timestamp and given.target.is_timestamp and given.target.precision < given.source.precision:
        return cut(made, given.target.precision)
    return made


def cut(sql: str, precision: int) -> str:
    """A timestamp with fewer places behind the second."""
    return f"date_trunc('{'second' if precision == 0 else 'millisecond'}', {sql})"


def in_utc(sql: str, dtype: Type) -> str:
    """A time without its time zone, which is UTC: several times as fast to compute with in DuckDB as one that has it."""
    return f"make_timestamp(epoch_us({sql}))" if dtype.kind == "timestamp_ltz" else sql


def of_utc(sql: str, dtype: Type) -> str:
    """A timestamp of UTC, or a date, as a time of a type."""
    return f"make_timestamptz(epoch_us({sql}))" if dtype.kind == "timestamp_ltz" else sql


def _between_arrays(given: _Casting) -> str:
    maker = _maker(given.source.item, given.target.item)
    assert maker is not None
    item = _Casting("__item", given.source.item, given.target.item, given.is_trying)
    return f"list_transform({given.sql}, lambda __item: {maker(item)})"


def _boolean_to_string(given: _Casting) -> str:
    return f"upper(CAST({given.sql} AS VARCHAR))"


def _approximate_to_string(given: _Casting) -> str:
    """As Java writes it: 1.0E7 from ten millions on and below a thousandth, NaN, Infinity."""
    text = f"CAST({given.sql} AS VARCHAR)"
    digits = r"regexp_replace(regexp_replace(replace(ltrim(__text, '-'), '.', ''), '^0+', ''), '0+$', '')"
    scientific = (
        "CASE WHEN contains(__text, 'e') THEN regexp_replace(regexp_replace(regexp_replace(replace(__text, 'e', 'E'), "
        r"'E([+-])0*', 'E\1'), 'E\+', 'E'), '^(-?[0-9]+)E', '\1.0E') "
        "ELSE (CASE WHEN __text[1] = '-' THEN '-' ELSE '' END) || "
        f"left({digits}, 1) || '.' || (CASE WHEN length({digits}) > 1 THEN {digits}[2:] ELSE '0' END) || 'E' || "
        "(CASE WHEN ltrim(__text, '-')[1] = '0' "
        r"THEN -1 - length(regexp_extract(__text, '\.(0*)', 1)) ELSE strpos(ltrim(__text, '-'), '.') - 2 END) END"
    )
    return (
        f"CASE WHEN {given.sql} = 0 OR (abs({given.sql}) >= 0.001 AND abs({given.sql}) < 10000000) THEN {text} "
        f"WHEN isnan({given.sql}) THEN 'NaN' "
        f"WHEN isinf({given.sql}) THEN (CASE WHEN {given.sql} > 0 THEN 'Infinity' ELSE '-Infinity' END) "
        f"WHEN {given.sql} IS NOT NULL THEN list_transform([{text}], lambda __text: {scientific})[1] END"
    )


def _timestamp_to_string(given: _Casting) -> str:
    return f"strftime({in_utc(given.sql, given.source)}, '%Y-%m-%d %H:%M:%S{_FRACTIONS[given.source.precision]}')"


def _binary_to_string(given: _Casting) -> str:
    return f"decode({given.sql})"


def _string_to_integer(given: _Casting) -> str:
    digits = f"nullif(regexp_extract({given.sql}, {text_of(_INTEGER_TEXT)}, 1), '')"
    is_number = f"regexp_matches({given.sql}, {text_of(_INTEGER_TEXT)})"
    found = f"{given.how}({digits} AS {given.target.duckdb})"
    return f"CASE WHEN {is_number} THEN {found} WHEN {given.sql} IS NOT NULL THEN {given.failing} END"


def _string_to_approximate(given: _Casting) -> str:
    return f"{given.how}({given.sql} AS {given.target.duckdb})"


def _string_to_boolean(given: _Casting) -> str:
    true, false = (", ".join(text_of(text) for text in texts) for texts in _BOOLEAN_TEXTS)
    word = f"lower(trim({given.sql}))"
    return (
        f"CASE WHEN {word} IN ({true}) THEN true WHEN {word} IN ({false}) THEN false "
        f"WHEN {given.sql} IS NOT NULL THEN {given.failing} END"
    )


def _string_to_time(given: _Casting) -> str:
    """Of a date, what is behind a space is passed over."""
    if given.target.kind == "date":
        day = f"regexp_extract({given.sql}, {text_of(_DATE_TEXT)}, 1)"
        found = f"{given.how}({day} AS DATE)"
        is_date = f"regexp_matches({given.sql}, {text_of(_DATE_TEXT)})"
        return f"CASE WHEN {is_date} THEN {found} WHEN {given.sql} IS NOT NULL THEN {given.failing} END"
    made = f"{given.how}({given.sql} AS {given.target.duckdb})"
    return made if given.target.precision == 6 else cut(made, given.target.precision)


def _string_to_binary(given: _Casting) -> str:
    return f"encode({given.sql})"


_TO_STRING: Final[dict[str, _Maker]] = {
    "number": _plain,
    "string": _plain,
    "boolean": _boolean_to_string,
    "float": _approximate_to_string,
    "double": _approximate_to_string,
    "date": _plain,
    "timestamp": _timestamp_to_string,
    "timestamp_ltz": _timestamp_to_string,
    "binary": _binary_to_string,
}
_FROM_STRING: Final[dict[str, _Maker]] = {
    "boolean": _string_to_boolean,
    "integer": _string_to_integer,
    "approximate": _string_to_approximate,
    "decimal": _string_to_approximate,
    "date": _string_to_time,
    "timestamp": _string_to_time,
    "timestamp_ltz": _string_to_time,
    "binary": _string_to_binary,
}
_TO_INTEGER: Final[dict[str, _Maker]] = {
    "boolean": _plain,
    "integer": _between_integers,
    "approximate": _approximate_to_integer,
    "decimal": _decimal_to_integer,
}
