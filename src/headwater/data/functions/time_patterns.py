"""Java's patterns for dates and times, as DuckDB writes and reads them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from headwater.data.functions.refusals import Refused

_LETTERS: Final = {
    "yyyy": ("%Y", r"\d{4}"),
    "uuuu": ("%Y", r"\d{4}"),
    "yy": ("%y", ""),
    "MMMM": ("%B", ""),
    "MMM": ("%b", ""),
    "MM": ("%m", r"\d{2}"),
    "M": ("%-m", r"\d{1,2}"),
    "dd": ("%d", r"\d{2}"),
    "d": ("%-d", r"\d{1,2}"),
    "DDD": ("%j", ""),
    "D": ("%-j", ""),
    "HH": ("%H", r"\d{2}"),
    "H": ("%-H", r"\d{1,2}"),
    "hh": ("%I", ""),
    "h": ("%-I", ""),
    "mm": ("%M", r"\d{2}"),
    "m": ("%-M", r"\d{1,2}"),
    "ss": ("%S", r"\d{2}"),
    "s": ("%-S", r"\d{1,2}"),
    "SSS": ("%g", r"\d{3}"),
    "SSSSSS": ("%f", r"\d{6}"),
    "a": ("%p", ""),
    "EEEE": ("%A", ""),
    "EEE": ("%a", ""),
    "EE": ("%a", ""),
    "E": ("%a", ""),
}
"""What letters are written as, and the regular expression of what they read; without one they cannot be read."""
_PIECE: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])")


class TimePattern(NamedTuple):
    """A pattern for DuckDB's strftime and strptime, and the regular expression of the texts that it reads."""

    duckdb: str
    regex: str | None
    letters: frozenset[str]


def time_pattern(pattern: str, function: str) -> TimePattern:
    """Java's pattern as DuckDB has it; letters that it has not are refused."""
    made, regex, letters, at = "", "", set[str](), 0
    can_read = True
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None:
            raise Refused(f"{function} cannot take the pattern {pattern!r}: a quote is not closed")
        at = found.end()
        if found[2] is not None:
            written, read = _LETTERS.get(found[0], ("", ""))
            if not written:
                raise Refused(f"{function} cannot take the pattern {pattern!r}: {found[0]!r} is not supported")
            made, regex, can_read = made + written, regex + read, can_read and bool(read)
            letters.add(found[0][0])
        else:
            plain = (found[1] if found[1] is not None else found[0]).replace("''", "'") or "'"
            made, regex = made + plain.replace("%", "%%"), regex + re.escape(plain)
    return TimePattern(made, regex if can_read else None, frozenset(letters))
