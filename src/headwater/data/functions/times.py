"""Times: parts of them, moving, rounding, text. The session's time zone is UTC."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from typing import Final

from headwater.data.functions.casts import cut, in_utc, of_utc
from headwater.data.functions.declared import Function, function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term, let
from headwater.data.functions.time_patterns import time_pattern
from headwater.data.functions.types import TIMESTAMP, Type, text_of

_PARTS: Final = {
    "MILLENNIUM": "millennium",
    "CENTURY": "century",
    "DECADE": "decade",
    "YEAR": "year",
    "ISOYEAR": "isoyear",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "DOY": "doy",
    "ISODOW": "isodow",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_FLOORS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_CEILS: Final = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_OF_A_DAY: Final = ("HOUR", "MINUTE", "SECOND", "MILLISECOND")
_MILLIS: Final = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}
_TIMESTAMP_TEXT: Final = r"\d{4}-\d{1,2}-\d{1,2}([ ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?)?"
_DATE_TEXT: Final = r"^\s*([0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2})\s*(?: .*)?$"
_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799
"""The years 1 to 9999."""
_MONTHS: Final = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _unit(term: Term, name: str, known: Sequence[str]) -> str:
    unit = term.text.upper().removeprefix("SQL_TSI_")
    unit = {"YEARS": "YEAR", "MONTHS": "MONTH", "DAYS": "DAY"}.get(unit, unit)
    if unit not in known:
        raise Refused(f"{name} does not know the unit {term.text}; it knows {', '.join(known)}")
    return unit


def _extract(call: Call) -> str:
    unit = _unit(call.terms[0], "EXTRACT", (*_PARTS, "DOW", "EPOCH", "MILLISECOND", "MICROSECOND"))
    return part(unit, call.terms[1])


def part(unit: str, term: Term) -> str:
    """A part of a time as a BIGINT."""
    sql = in_utc(term.sql, term.type)
    if term.type.kind == "date" and unit == "MICROSECOND":
        raise Refused("a date has no microseconds")
    if term.type.kind == "date" and unit in _OF_A_DAY:
        return f"CASE WHEN {term.sql} IS NOT NULL THEN CAST(0 AS BIGINT) END"
    if unit == "DOW":
        return f"(date_part('dow', {sql}) + 1)"
    if unit == "EPOCH":
        return f"CAST(floor(epoch({sql})) AS BIGINT)"
    if unit in ("MILLISECOND", "MICROSECOND"):
        return f"(date_part('{unit.lower()}', {sql}) % {1000 if unit == 'MILLISECOND' else 1000000})"
    return f"date_part('{_PARTS[unit]}', {sql})"


def _part(name: str, unit: str, meaning: str, **others: object) -> Function:
    return function(name, "(time) -> bigint", lambda call: part(unit, call.terms[0]), meaning, **others)


def _floored(call: Call) -> str:
    return floored(call.terms[0], _unit(call.terms[1], "FLOOR", _FLOORS))


def floored(term: Term, unit: str) -> str:
    """The begin of the unit that a time is in; weeks begin on Sunday."""
    sql = in_utc(term.sql, term.type)
    made = f"date_trunc('{unit.lower()}', {sql})"
    if unit == "WEEK":
        made = f"date_trunc('day', {sql}) - to_days(CAST(date_part('dow', {sql}) AS INTEGER))"
    return f"CAST({made} AS DATE)" if term.type.kind == "date" else of_utc(made, term.type)


def _ceiled(call: Call) -> str:
    unit = _unit(call.terms[1], "CEIL", _CEILS)
    begin = floored(call.terms[0], unit)
    step = {"QUARTER": "3 months"}.get(unit, f"1 {unit.lower()}")
    following = f"CAST({begin} + INTERVAL '{step}' AS {call.type.duckdb})"
    return f"CASE WHEN {begin} = {call[0]} THEN {call[0]} ELSE {following} END"


def _added(call: Call) -> str:
    unit = _unit(call.terms[0], "TIMESTAMPADD", _FLOORS)
    count, time = call[1], call.terms[2]
    made = {
        "YEAR": f"to_years({count})",
        "QUARTER": f"to_months({count} * 3)",
        "MONTH": f"to_months({count})",
        "WEEK": f"to_days({count} * 7)",
        "DAY": f"to_days({count})",
        "HOUR": f"to_hours({count})",
        "MINUTE": f"to_minutes({count})",
        "SECOND": f"to_seconds({count})",
        "MILLISECOND": f"to_milliseconds({count})",
    }[unit]
    return f"CAST({time.sql} + {made} AS {call.type.duckdb})"


def _added_type(terms: Sequence[Term]) -> Type:
    """A date that is moved by hours is a timestamp."""
    is_timed = terms[2].type.kind == "date" and terms[0].text.upper() in _OF_A_DAY
    if is_timed and terms[0].text.upper() == "MILLISECOND":
        raise Refused("TIMESTAMPADD cannot move a date by milliseconds; cast it to TIMESTAMP")
    return TIMESTAMP if is_timed else terms[2].type


def _between(call: Call) -> str:
    """Times count in milliseconds. Months are whole if the day, and on the same day the time, has come."""
    unit = _unit(call.terms[0], "TIMESTAMPDIFF", _FLOORS)
    first, second = call.terms[1:]
    if unit in _MILLIS:
        if unit == "MILLISECOND" and (first.type.kind == "date") != (second.type.kind == "date"):
            raise Refused("TIMESTAMPDIFF has no milliseconds between a date and a timestamp; cast the date")
        start, end = (f"epoch_ms({term.sql})" for term in (first, second))
        return f"CAST(({end} - {start}) // {_MILLIS[unit]} AS INTEGER)"
    pair = f"{{'d': CAST({first.sql} AS DATE), 'e': CAST({second.sql} AS DATE), 't': {first.sql}, 'u': {second.sql}}}"
    months = (
        "CASE WHEN __p.e >= __p.d THEN date_sub('month', __p.d, __p.e) ELSE -date_sub('month', __p.e, __p.d) END "
        "- CASE WHEN CAST(__p.d + to_months(CAST(CASE WHEN __p.e >= __p.d THEN date_sub('month', __p.d, __p.e) "
        "ELSE -date_sub('month', __p.e, __p.d) END AS INTEGER)) AS DATE) = __p.e "
        "AND (__p.u - CAST(__p.e AS TIMESTAMP)) < (__p.t - CAST(__p.d AS TIMESTAMP)) THEN 1 ELSE 0 END"
    )
    if "date" in (first.type.kind, second.type.kind):
        times = {term.sql: f"CAST({term.sql} AS TIMESTAMP)" for term in (first, second)}
        pair = (
            f"{{'d': CAST({first.sql} AS DATE), 'e': CAST({second.sql} AS DATE), "
            f"'t': {times[first.sql]}, 'u': {times[second.sql]}}}"
        )
    return f"CAST(({let('__p', pair, months)}) // {_MONTHS[unit]} AS INTEGER)"


def _formatted(call: Call) -> str:
    pattern = time_pattern(call.terms[1].text, "DATE_FORMAT")
    return f"strftime({in_utc(call[0], call.terms[0].type)}, {text_of(pattern.duckdb)})"


def _read(name: str, term: Term, pattern: str) -> str:
    """The timestamp that is written in a text, or NULL."""
    found = time_pattern(pattern, name)
    if found.regex is None or not (found.letters >= {"M", "d"} and found.letters & {"y", "u"}):
        raise Refused(f"{name} cannot read the pattern {pattern!r}: it takes digits of a year, month and day at least")
    read = f"try_strptime({term.sql}, {text_of(found.duckdb)})"
    return f"CASE WHEN regexp_full_match({term.sql}, {text_of(found.regex)}) THEN {read} END"


def _to_timestamp(call: Call) -> str:
    """What is not written after the pattern is tried as `yyyy-MM-dd HH:mm:ss`."""
    is_time = f"regexp_full_match({call[0]}, {text_of(_TIMESTAMP_TEXT)})"
    plain = f"CASE WHEN {is_time} THEN TRY_CAST({call[0]} AS TIMESTAMP) END"
    if len(call) == 1:
        return cut(plain, 3)
    return f"coalesce({cut(_read('TO_TIMESTAMP', call.terms[0], call.terms[1].text), 3)}, {plain})"


def _to_date(call: Call) -> str:
    if len(call) == 2:
        return f"CAST({_read('TO_DATE', call.terms[0], call.terms[1].text)} AS DATE)"
    day = f"regexp_extract({call[0]}, {text_of(_DATE_TEXT)}, 1)"
    return f"CASE WHEN regexp_matches({call[0]}, {text_of(_DATE_TEXT)}) THEN TRY_CAST({day} AS DATE) END"


def _unix_timestamp(call: Call) -> str:
    pattern = call.terms[1].text if len(call) == 2 else "yyyy-M-d H:m:s"
    if "S" in pattern:
        raise Refused(f"UNIX_TIMESTAMP cannot take the pattern {pattern!r}: it counts seconds")
    seconds = f"CAST(floor(epoch({_read('UNIX_TIMESTAMP', call.terms[0], pattern)})) AS BIGINT)"
    return f"coalesce({seconds}, CASE WHEN {call[0]} IS NOT NULL THEN CAST(-9223372036854775808 AS BIGINT) END)"


def _from_unixtime(call: Call) -> str:
    pattern = time_pattern(call.terms[1].text if len(call) == 2 else "yyyy-MM-dd HH:mm:ss", "FROM_UNIXTIME")
    return f"strftime(make_timestamp({call[0]} * 1000000), {text_of(pattern.duckdb)})"


def _to_timestamp_ltz(call: Call) -> str:
    precision = call.terms[1].literal if len(call) == 2 else 3
    if precision not in (0, 3):
        raise Refused("TO_TIMESTAMP_LTZ takes 0 (seconds) or 3 (milliseconds) as its precision")
    unit = 1000 if precision else 1
    made = f"make_timestamptz({call[0]} * {1_000_000 // unit})"
    return f"CASE WHEN {call[0]} BETWEEN {_FIRST_SECOND * unit} AND {_LAST_SECOND * unit + unit - 1} THEN {made} END"


def _truncated(call: Call) -> str:
    unit = _unit(call.terms[0], "DATE_TRUNC", _FLOORS)
    made = f"date_trunc('{unit.lower()}', {in_utc(call[1], call.type)})"
    return f"CAST({made} AS DATE)" if call.type.kind == "date" else of_utc(made, call.type)


def _converted_zone(call: Call) -> str:
    for term in call.terms[1:]:
        try:
            zoneinfo.ZoneInfo(term.text)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            raise Refused(f"CONVERT_TZ knows no time zone {term.text!r}") from None
    read = _read("CONVERT_TZ", call.terms[0], "yyyy-M-d H:m:s")
    return f"strftime(timezone({call[2]}, timezone({call[1]}, {read})), '%Y-%m-%d %H:%M:%S')"


TIMES = (
    function(
        "EXTRACT",
        "(literal string, time) -> bigint",
        _extract,
        "A part of a time: YEAR, QUARTER, MONTH, WEEK (of ISO 8601), DAY, DOY, DOW (1 is Sunday), ISODOW, HOUR, "
        "MINUTE, SECOND, MILLISECOND, MICROSECOND, EPOCH, DECADE, CENTURY, MILLENNIUM, ISOYEAR.",
        written="EXTRACT(unit FROM a)",
    ),
    _part("YEAR", "YEAR", "The year."),
    _part("QUARTER", "QUARTER", "The quarter, 1 to 4."),
    _part("MONTH", "MONTH", "The month, 1 to 12."),
    _part("WEEK", "WEEK", "The week of the year by ISO 8601."),
    _part("DAYOFYEAR", "DOY", "The day of the year."),
    _part("DAYOFMONTH", "DAY", "The day of the month.", also=("DAY",)),
    _part("DAYOFWEEK", "DOW", "The day of the week; 1 is Sunday."),
    _part("HOUR", "HOUR", "The hour, 0 to 23."),
    _part("MINUTE", "MINUTE", "The minute, 0 to 59."),
    _part("SECOND", "SECOND", "The second, 0 to 59."),
    function(
        "FLOOR TO",
        "(time, literal string) -> time",
        _floored,
        "The begin of the unit that a time is in. Weeks begin on Sunday.",
        written="FLOOR(a TO unit)",
        gives=lambda t: t[0].type,
    ),
    function(
        "CEIL TO",
        "(time, literal string) -> time",
        _ceiled,
        "The begin of the next unit, or the time itself if it is one.",
        written="CEIL(a TO unit)",
        gives=lambda t: t[0].type,
    ),
    function(
        "DATE_TRUNC",
        "(literal string, time) -> time",
        _truncated,
        "The begin of the unit that a time is in. Weeks begin on Monday. Flink has no such function.",
        gives=lambda t: t[1].type,
    ),
    function(
        "TIMESTAMPADD",
        "(literal string, int, time) -> time",
        _added,
        "A time moved by so many units.",
        written="TIMESTAMPADD(unit, a, b)",
        gives=_added_type,
    ),
    function(
        "TIMESTAMPDIFF",
        "(literal string, time, time) -> int",
        _between,
        "How many whole units are between two times.",
        written="TIMESTAMPDIFF(unit, a, b)",
    ),
    function(
        "DATE_FORMAT",
        "(timestamps, literal string) -> string",
        _formatted,
        "A time as text, by a pattern of Java's such as `yyyy-MM-dd HH:mm`.",
    ),
    function(
        "TO_TIMESTAMP",
        "(string, literal string?) -> timestamp(3)",
        _to_timestamp,
        "The timestamp that is written in a text, by a pattern of Java's; NULL if it cannot be read.",
        spark="It gives a timestamp with time zone there, and fails on text that it cannot read.",
    ),
    function(
        "TO_DATE",
        "(string, literal string?) -> date",
        _to_date,
        "The date that is written in a text, by a pattern of Java's; NULL if it cannot be read.",
    ),
    function(
        "TO_TIMESTAMP_LTZ",
        "(bigint, literal int?) -> timestamp_ltz(3)",
        _to_timestamp_ltz,
        "The time that is so many milliseconds, or with 0 seconds, after the beginning of 1970.",
    ),
    function(
        "FROM_UNIXTIME",
        "(bigint, literal string?) -> string",
        _from_unixtime,
        "The time that is so many seconds after the beginning of 1970, as text.",
    ),
    function(
        "UNIX_TIMESTAMP",
        "(string, literal string?) -> bigint",
        _unix_timestamp,
        "The seconds since the beginning of 1970 of the time in a text.",
    ),
    function(
        "CONVERT_TZ",
        "(string, literal string, literal string) -> string",
        _converted_zone,
        "The time in a text, `yyyy-MM-dd HH:mm:ss`, of one time zone as it is in another; NULL if it cannot be read.",
    ),
)
