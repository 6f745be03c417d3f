"""Where expressions differ from Flink's on purpose: which, and why. `docs/reference/functions.md` has the reasons.

A rule is a regular expression over `table: expression :: difference`. Every rule must be needed by some recorded case.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """Differences of one kind."""

    pattern: str
    reason: str


OVERFLOW = (
    "A number that does not fit its type fails. In Flink integers wrap around silently and large decimals become NULL."
)
NAN = "NaN is equal to itself and greater than all numbers, as in sorting and keys. In Flink every comparison with it is false."
BARE_NULL = "A bare NULL may stand wherever a value may."
CHANGING = "What differs on every call is refused, for a replay must give the same."
EARLY = "Times before 1970 have the right parts. In Flink those with a fraction or time of day are off by one."
DATE_PARTS = "A DATE has 0 seconds and milliseconds. Flink gives what is left of the number of days."
LENIENT = "A date that does not exist, such as 2024-02-30, or that is only a year, cannot be read. Flink moves or completes it."
PATTERNS = (
    "TO_DATE, UNIX_TIMESTAMP and CONVERT_TZ read a text that fits their pattern as a whole. Flink reads what fits at its "
    "start, and gives nonsense for the rest."
)
LETTER_T = "A T may stand between date and time where a text is cast to a timestamp."
WEEK = "INTERVAL '1' WEEK is seven days. In Flink it is an hour."
CEIL_DAY = "CEIL of a DATE to DAY is that day. In Flink it is the next."
UNITS = "FLOOR and CEIL have no DECADE, CENTURY, MILLENNIUM, and CEIL no WEEK and MILLISECOND; EXTRACT no NANOSECOND."
MIXED_TIMES = (
    "DATE, TIMESTAMP and TIMESTAMP_LTZ may meet: a date is its midnight, the time zone is UTC, and the result has it."
)
FLOATS = "FLOAT with DOUBLE gives DOUBLE, in whichever order. In Flink it is the type of the first."
MORE_TAKEN = "Decimals may stand where doubles may, and an array may be asked for a value of a wider type."
DECIMAL_PLACES = "Decimals are rounded to a literal number of places, and calls with one argument need no second."
FLINK_FAILS = "Flink fails here by mistake."
WHEN_RUN = "Division by a literal 0 fails when it is computed, and not for a batch without rows."
NOT_FINITE = "TRY_CAST and ROUND never fail. In Flink they do for NaN and infinities."
SQRT = "The square root of minus infinity is NaN."
PATTERN_LETTERS = "Letters of a time pattern that have no equal are refused, and patterns are literals."
REGEX = (
    "Regular expressions that can match nothing are refused in REGEXP_REPLACE, for RE2 counts such matches otherwise."
)
BASE64 = "Base64 without its padding fails, and hexadecimal text has an even number of digits."
NOT_THERE = "Flink has it, and the table does not yet."
BINARY = "Functions of strings do not take binary values; decode them first."
MAP_KEYS = "A map has no NULL as a key, and no key twice."
ROW_NAMES = "The fields of ROW(…) are called f0, f1, … A row is written with the word ROW."
NESTED_TEXT = "Arrays, maps and rows are not cast to text, maps are not compared, and TRY_CAST does not take arrays."
INTERVALS = "An interval is a literal, and no column."
ONE_CHARACTER = "ARRAY_JOIN takes a literal between the items."
JSON_NUMBERS = "A number that comes out of JSON is written without zeros at its end."
JSON_PATHS = "Paths in JSON have names and indexes, and are literals; a value that is no string is no JSON."
LEADING_ZERO = "A decimal literal .5 is read as 0.5 and has a digit more."

EXPLAINED = (
    Rule(r"Overflow|Failed to cast decimal|out of range for the destination", OVERFLOW),
    Rule(r"numbers: [iyd] (<|<=|>|>=|=|<>) [xyd] :: row 4: (false|true) in Flink", NAN),
    Rule(r"Illegal use of 'NULL'|casting from NULL|LIKE NULL :: refused by Flink", BARE_NULL),
    Rule(r":: refused by us: .* gives another value each time", CHANGING),
    Rule(r"times: (EXTRACT\(\w+ FROM [al]\)|\w+\([al]( TO \w+)?\)|CAST\(a AS .*) :: row 3: ", EARLY),
    Rule(r"times: TIMESTAMPDIFF\(MILLISECOND, .* :: row 3: ", EARLY),
    Rule(r"times: (EXTRACT\((SECOND|MILLISECOND) FROM d|SECOND\(d)\) :: row", DATE_PARTS),
    Rule(
        r"(CAST\([uvws] AS (DATE|TIMESTAMP)|TO_TIMESTAMP\(u).*:: row \d: .*\d\d\d\d-\d\d-\d\d.* in Flink, .*(error|null)",
        LENIENT,
    ),
    Rule(r"CAST\(u AS TIMESTAMP.*:: row 2: .* in Flink, .*2024-05-06T07:08:09", LETTER_T),
    Rule(r"times: (TO_DATE|UNIX_TIMESTAMP|CONVERT_TZ)\(.*(:: row|counts seconds)", PATTERNS),
    Rule(r"INTERVAL '1' WEEK :: row", WEEK),
    Rule(r"CEIL\(d TO DAY\)", CEIL_DAY),
    Rule(r"(FLOOR|CEIL|EXTRACT)\(.* :: refused by us: .* does not know the unit", UNITS),
    Rule(r"times: [ald] (=|<>|<|>|>=) .* :: refused by Flink", MIXED_TIMES),
    Rule(r"TIMESTAMPDIFF\(.*(same type\.|has no milliseconds)|times: CASE .* ELSE [ld] END ::", MIXED_TIMES),
    Rule(r"numbers: f [-+*/] x :: type FLOAT", FLOATS),
    Rule(r"ATAN2\(.*DECIMAL|ARRAY_CONTAINS\(a, 1\.5\)", MORE_TAKEN),
    Rule(r"rounded to a literal number of places", DECIMAL_PLACES),
    Rule(r"NullPointerException", FLINK_FAILS),
    Rule(r"1 / 0 :: refused by Flink", WHEN_RUN),
    Rule(r"(ROUND|TRUNCATE|TRY_CAST)\(.*NumberFormatException", NOT_FINITE),
    Rule(r"SQRT\(x\)", SQRT),
    Rule(r"DATE_FORMAT\(.* :: refused by us", PATTERN_LETTERS),
    Rule(r"REGEXP_REPLACE\(.*matches nothing between", REGEX),
    Rule(r"FROM_BASE64|UNHEX", BASE64),
    Rule(r"no function|SHA2\(.*refused by us|OVERLAPS", NOT_THERE),
    Rule(r"(STARTSWITH|ENDSWITH|MD5)\(z.*refused by us", BINARY),
    Rule(r"MAP\[.*Map keys", MAP_KEYS),
    Rule(r"ROW\(.*EXPR\$0|\(i, t\) :: refused by us", ROW_NAMES),
    Rule(r"no cast from (array|map|row)|m = m :: refused by us", NESTED_TEXT),
    Rule(r"INTERVAL .* :: refused by us", INTERVALS),
    Rule(r"ARRAY_JOIN\(s, t.*refused by us", ONE_CHARACTER),
    Rule(r"JSON_(VALUE|QUERY)\(j, '\$(\.g)?'.*1\.50", JSON_NUMBERS),
    Rule(r"JSON_\w+\((j|i), .* :: refused by us", JSON_PATHS),
    Rule(r"numbers: \.5 :: type", LEADING_ZERO),
)


def reason(table: str, expression: str, difference: str) -> Rule | None:
    """The rule that explains a difference."""
    text = f"{table}: {expression} :: {difference}"
    return next((rule for rule in EXPLAINED if re.search(rule.pattern, text)), None)
