"""Literals: numbers, strings, dates, timestamps and intervals, as Flink SQL types them."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import Final

from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Term
from headwater.data.functions.types import (
    BIGINT,
    BINARY,
    DATE,
    DAYS,
    DOUBLE,
    INT,
    MONTHS,
    STRING,
    Type,
    decimal,
    text_of,
)

_MICROSECONDS: Final = {
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.(\d{1,6}))?)?)?")
_NUMBER: Final = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
_LEAST_BIGINT: Final = -(1 << 63)


def text(value: str) -> Term:
    """A string."""
    return Term(STRING, text_of(value), value, is_literal=True)


def number(written: str) -> Term:
    """An integer is INT, or BIGINT if it needs to be; with a point it is a decimal, with an exponent a double."""
    if _NUMBER.fullmatch(written) is None:
        raise Refused(f"{written} is no number")
    if "e" in written.lower():
        if math.isinf(float(written)):
            raise Refused(f"the number {written} is too large for a double")
        return Term(DOUBLE, f"CAST('{written}' AS DOUBLE)", float(written), is_literal=True)
    if "." not in written:
        value = int(written)
        if -(1 << 31) <= value < 1 << 31:
            return Term(INT, f"CAST({value} AS INTEGER)", value, is_literal=True)
        if _LEAST_BIGINT <= value < 1 << 63:
            return Term(BIGINT, f"CAST({value} AS BIGINT)", value, is_literal=True)
    exact = Decimal(written)
    scale = len(written.partition(".")[2])
    precision = len(written.lstrip("-").replace(".", ""))
    if precision > 38:
        raise Refused(f"the number {written} has more than 38 digits")
    found = decimal(precision, scale)
    return Term(found, f"CAST('{exact:f}' AS {found.duckdb})", exact, is_literal=True)


def binary(written: str) -> Term:
    """`x'41ff'`."""
    if re.fullmatch(r"([0-9A-Fa-f]{2})*", written) is None:
        raise Refused(f"x'{written}' is not in hexadecimal digits, two for a byte")
    return Term(BINARY, f"from_hex('{written}')", is_literal=True)


def date_literal(written: str) -> Term:
    """`DATE '2024-05-06'`."""
    try:
        day = dt.date.fromisoformat(written)
    except ValueError as error:
        raise Refused(f"DATE '{written}' is no date: {error}") from None
    return Term(DATE, f"DATE '{day}'", written, is_literal=True)


def timestamp_literal(written: str) -> Term:
    """A timestamp without a time zone; its places behind the second are those that are written."""
    found = _TIMESTAMP.fullmatch(written)
    try:
        if found is None:
            raise ValueError("it is not like 2024-05-06 07:08:09.123456")
        at = dt.datetime.fromisoformat(written)
    except ValueError as error:
        raise Refused(f"TIMESTAMP '{written}' is no timestamp: {error}") from None
    places = len(found[1] or "")
    precision = 0 if places == 0 else 3 if places <= 3 else 6
    return Term(Type("timestamp", precision), f"TIMESTAMP '{at}'", written, is_literal=True)


def interval_literal(written: str, first: str, last: str | None) -> Term:
    """`INTERVAL '1' DAY`, `INTERVAL '1 02:03' DAY TO MINUTE`, `INTERVAL '1-6' YEAR TO MONTH`."""
    sign, body = (-1, written[1:]) if written.startswith("-") else (1, written.removeprefix("+"))
    try:
        if first in ("YEAR", "MONTH", "QUARTER"):
            return _months(sign, body, first, last)
        micros = _micros(body, [*_MICROSECONDS], first, last)
    except (ValueError, KeyError, ArithmeticError):
        units = first if last is None else f"{first} TO {last}"
        raise Refused(f"INTERVAL '{written}' {units} cannot be read; write INTERVAL '1' DAY") from None
    return Term(DAYS, f"INTERVAL '{sign * micros} microseconds'", sign * micros, is_literal=True)


def _months(sign: int, body: str, first: str, last: str | None) -> Term:
    if last == "MONTH" and first == "YEAR":
        years, months = body.split("-")
        count = int(years) * 12 + int(months)
    elif last is None:
        count = int(body) * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[first]
    else:
        raise ValueError
    return Term(MONTHS, f"INTERVAL '{sign * count} months'", sign * count, is_literal=True)


def _micros(body: str, units: list[str], first: str, last: str | None) -> int:
    if first == "WEEK" and last is None:
        return int(body) * 7 * _MICROSECONDS["DAY"]
    span = units[units.index(first) : units.index(last or first) + 1]
    values = re.split(r"[ :]", body)
    if len(values) != len(span):
        raise ValueError
    total = 0
    for unit, value in zip(span, values, strict=True):
        exact = Decimal(value) * _MICROSECONDS[unit]
        if exact != int(exact) or (unit != "SECOND" and "." in value):
            raise ValueError
        total += int(exact)
    return total
