"""The rows of a body, each with the text it came in, so that no number is changed on its way into the log."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa

from headwater.connectors.formats import JsonFormat, numbered_rows
from headwater.data.schema import Schema
from headwater.errors import short
from headwater.serving.refused import Refused

LINES = ("application/x-ndjson", "application/jsonl")
KINDS = ("application/json", *LINES)
_AT_ONCE = 8_192
"""Rows that are in memory beside their body before they are columns, and for which another request waits."""
_MAX_NESTING = 100
"""Far more than a schema needs, far less than the parsers can take."""
_MAX_DIGITS = 300
"""Of a whole number: more than the widest decimal has, and not yet beyond what a double can be."""
_SHOWN_NAMES = 5
_SPACE = re.compile(r"[ \t\n\r]*")
_UTF8_MARK = b"\xef\xbb\xbf"


def batches(body: bytes | bytearray, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a body of a content type, in a topic's schema: an object, an array of them, or one on each line."""
    known = Schema.of(schema).ddl()
    rows = enumerate(_rows(body, kind), 1)
    while texts := [(number, _checked(row, number, schema.names, known)) for number, row in islice(rows, _AT_ONCE)]:
        for found in numbered_rows(texts, JsonFormat(), schema):
            if isinstance(found, tuple):
                (number, _), reason = found
                raise Refused(400, f"row {number} does not fit '{known}': {reason}")
            yield found


def _rows(body: bytes | bytearray, kind: str) -> Iterator[tuple[Any, bytes]]:
    """What each row says, and its text."""
    body = body.removeprefix(_UTF8_MARK)
    if kind not in LINES:
        with _refusing("the body"):
            for row, text in _elements(body.decode()):
                yield row, text.encode()
        return
    lines = (bytes(line) for line in body.splitlines() if line.strip())
    for number, line in enumerate(lines, 1):
        with _refusing(f"row {number}"):
            yield _JSON.decode(line.decode()), line


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Answer what the parser says of a text."""
    try:
        yield
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError as error:
        raise Refused(400, f"{what} is not JSON: {error}") from None


def _elements(text: str) -> Iterator[tuple[Any, str]]:
    """The elements of an array, or else the one value that the text is; each with its part of the text."""
    at = _after_space(text, 0)
    if not text.startswith("[", at):
        yield _JSON.decode(text), text
        return
    at = _after_space(text, at + 1)
    is_over = text.startswith("]", at)
    while not is_over:
        value, end = _JSON.raw_decode(text, at)
        yield value, text[at:end]
        at = _after_space(text, end)
        is_over = not text.startswith(",", at)
        if not is_over:
            at = _after_space(text, at + 1)
    if not text.startswith("]", at):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    if (rest := _after_space(text, at + 1)) != len(text):
        raise json.JSONDecodeError("Extra data", text, rest)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _checked(given: tuple[Any, bytes], number: int, names: list[str], known: str) -> bytes:
    """The text of a row that has the topic's columns, or some of them."""
    row, text = given
    if not isinstance(row, dict):
        raise Refused(400, f"row {number} is not an object")
    if unknown := sorted(row.keys() - set(names)):
        more = f" and {len(unknown) - _SHOWN_NAMES:,} more" if len(unknown) > _SHOWN_NAMES else ""
        raise Refused(400, f"row {number} has {', '.join(unknown[:_SHOWN_NAMES])}{more}; the topic has '{known}'")
    level = [value for value in row.values() if isinstance(value, dict | list)]
    for _ in range(_MAX_NESTING):
        if not level:
            return text
        inner = (value for one in level for value in (one.values() if isinstance(one, dict) else one))
        level = [value for value in inner if isinstance(value, dict | list)]
    raise _too_deep(f"row {number}")


def _too_deep(what: str) -> Refused:
    return Refused(400, f"{what} is nested deeper than {_MAX_NESTING} levels")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"an object has the member {twice!r} twice")
    return members


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON; write it as text")


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{short(digits)} is beyond what a number can be")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits; {_MAX_DIGITS} are the most")
    return int(digits)


_JSON = json.JSONDecoder(object_pairs_hook=_members, parse_float=_fraction, parse_int=_whole, parse_constant=_no_number)
