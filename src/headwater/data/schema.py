"""Schemas and types: Spark DDL in, Apache Arrow types inside.

The parser is our own because schemas are read where no JVM runs (graph building, the local engine, the harness), and
because a wrong type must be reported with its position.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeAlias

import pyarrow as pa

from headwater.data.errors import BadMapKey
from headwater.data.rows import Row, row_class
from headwater.errors import SchemaError

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval": pa.duration("us"),
    "void": pa.null(),
}
_DECIMAL_NAMES = ("decimal", "dec", "numeric")
_CANONICAL = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.duration("us"): "interval day to second",
    pa.null(): "void",
}
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_][A-Za-z_0-9]*)|(\d+)|('(?:[^'\\]|\\.)*')|(.))", re.DOTALL)


@dataclass(frozen=True)
class Schema:
    """The named, typed, nullable fields of a stream's rows."""

    arrow: pa.Schema

    @classmethod
    def of(cls, given: SchemaLike) -> Schema:
        """A schema from DDL text, an Arrow schema, or a schema.

        >>> Schema.of("user string, tags array<string> not null").ddl()
        'user string, tags array<string> not null'
        """
        if isinstance(given, Schema):
            return given
        if isinstance(given, pa.Schema):
            for field in given:
                type_ddl(field.type)
            return cls(_checked(list(given), str(given)))
        if isinstance(given, str):
            return cls(_checked(_Parser(given).fields(end=None), given))
        raise SchemaError.not_a_schema(given)

    @property
    def names(self) -> list[str]:
        """The fields' names, in order."""
        return list(self.arrow.names)

    @cached_property
    def row(self) -> type[Row]:
        """The named-tuple class of this schema's rows."""
        return row_class(tuple(self.arrow.names))

    @property
    def struct(self) -> pa.DataType:
        """The type of a whole row as one value."""
        return pa.struct(list(self.arrow))

    def field(self, name: str) -> pa.Field:
        """One field; an unknown name is an error that lists the known ones."""
        if name not in self.arrow.names:
            raise SchemaError.no_field(name, self.names)
        return self.arrow.field(name)

    def ddl(self) -> str:
        """The schema as DDL text that reads back as the same schema."""
        return ", ".join(_field_ddl(f, " ") for f in self.arrow)

    def __str__(self) -> str:
        return self.ddl()


SchemaLike: TypeAlias = "Schema | pa.Schema | str"


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of one DDL type such as `map<string, decimal(10,2)>`."""
    parser = _Parser(text)
    found = parser.type()
    parser.expect_end()
    return found


def type_ddl(dtype: pa.DataType) -> str:
    """The DDL of an Arrow type, or an error for a type Headwater does not carry."""
    if dtype in _CANONICAL:
        return _CANONICAL[dtype]
    if pa.types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_list(dtype):
        return f"array<{type_ddl(dtype.value_type)}>"
    if pa.types.is_map(dtype):
        return f"map<{type_ddl(dtype.key_type)},{type_ddl(dtype.item_type)}>"
    if pa.types.is_struct(dtype):
        return "struct<" + ",".join(_field_ddl(f, ":") for f in dtype) + ">"
    raise SchemaError.unsupported_type(str(dtype), sorted(_SIMPLE))


def quoted(name: str) -> str:
    """A name as DDL and SQL take it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _field_ddl(field: pa.Field, between: str) -> str:
    name = field.name if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", field.name) else quoted(field.name)
    return f"{name}{between}{type_ddl(field.type)}" + ("" if field.nullable else " not null")


def _checked(fields: list[pa.Field], text: str) -> pa.Schema:
    if not fields:
        raise SchemaError.empty(text)
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise SchemaError.duplicate_field(field.name, text)
        if field.name.startswith("__"):
            raise SchemaError.reserved_name(field.name)
        _refuse_map_keys(field.type)
        seen.add(field.name)
    return pa.schema(fields)


def _refuse_map_keys(dtype: pa.DataType) -> None:
    """Refuse maps that cannot be dicts of Python."""
    if pa.types.is_map(dtype) and _is_unhashable(dtype.key_type):
        raise BadMapKey.of(type_ddl(dtype.key_type))
    if pa.types.is_nested(dtype):
        for at in range(dtype.num_fields):
            _refuse_map_keys(dtype.field(at).type)


def _is_unhashable(dtype: pa.DataType) -> bool:
    if pa.types.is_struct(dtype):
        return any(_is_unhashable(field.type) for field in dtype)
    return bool(pa.types.is_null(dtype) or pa.types.is_nested(dtype))


class _Parser:
    """Recursive descent over the tokens of one DDL text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        for match in _TOKEN.finditer(text.rstrip()):
            group = match.lastindex or 0
            self._tokens.append((match.group(group), match.start(group)))
        self._at = 0

    def fields(self, end: str | None) -> list[pa.Field]:
        found: list[pa.Field] = []
        while self._peek() != (end or ""):
            name = self._name()
            self._accept(":")
            dtype = self.type()
            nullable = not self._accept_words("not", "null")
            if pa.types.is_null(dtype) and not nullable:
                self._fail("a void field holds nothing but nulls", self._at - 2)
            if self._accept("comment"):
                self._take("a comment in quotes", lambda t: t.startswith("'"))
            found.append(pa.field(name, dtype, nullable))
            if not self._accept(","):
                break
        if end is None:
            self.expect_end()
        return found

    def type(self) -> pa.DataType:
        start = self._at
        word = self._take("a type", lambda t: t[:1].isalpha()).lower()
        if word in _DECIMAL_NAMES:
            precision, scale = self._number_pair() if self._peek() == "(" else (10, 0)
            if not (1 <= precision <= 38 and 0 <= scale <= precision):
                self._fail(
                    f"decimal({precision},{scale}) is out of range; precision is 1 to 38, scale 0 to precision", start
                )
            return pa.decimal128(precision, scale)
        if word in ("char", "character", "varchar"):
            self._require("(")
            self._take("a length", str.isdigit)
            self._require(")")
            return pa.string()
        if word == "array":
            return self._angled(lambda: pa.list_(self.type()))
        if word == "map":
            return self._angled(self._map)
        if word == "struct":
            return self._angled(lambda: pa.struct(self.fields(end=">")))
        if word == "interval":
            return self._interval(start)
        if word in _SIMPLE:
            return _SIMPLE[word]
        known = sorted([*_SIMPLE, "decimal(p,s)", "array<…>", "map<…,…>", "struct<…>"])
        raise self._error(f"type {word!r} is not supported; use one of {', '.join(known)}", start)

    def expect_end(self) -> None:
        if self._peek():
            self._fail(f"did not expect {self._peek()!r}", self._at)

    def _map(self) -> pa.DataType:
        start = self._at
        key = self.type()
        if _is_unhashable(key):
            self._fail(f"a map's key cannot be {type_ddl(key)}: it must not be null and must be hashable", start)
        self._require(",")
        return pa.map_(key, self.type())

    def _interval(self, start: int) -> pa.DataType:
        units = ("day", "hour", "minute", "second")
        if self._peek().lower() in ("year", "month"):
            self._fail("year-month intervals have no fixed length and are not supported; use an int of months", start)
        if self._peek().lower() in units:
            self._at += 1
            if self._accept("to"):
                self._take("day, hour, minute or second", lambda t: t.lower() in units)
        return pa.duration("us")

    def _angled(self, inner: Callable[[], pa.DataType]) -> pa.DataType:
        self._require("<")
        found = inner()
        self._require(">")
        return found

    def _number_pair(self) -> tuple[int, int]:
        self._require("(")
        first = int(self._take("a precision", str.isdigit))
        second = int(self._take("a scale", str.isdigit)) if self._accept(",") else 0
        self._require(")")
        return first, second

    def _name(self) -> str:
        token = self._take("a field name", lambda t: t[:1] in "`_" or t[:1].isalpha())
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _accept(self, word: str) -> bool:
        if self._peek().lower() == word:
            self._at += 1
            return True
        return False

    def _accept_words(self, first: str, second: str) -> bool:
        if self._accept(first):
            self._require(second)
            return True
        return False

    def _require(self, word: str) -> None:
        if not self._accept(word):
            self._fail(f"expected {word!r}, found {self._peek() or 'the end'!r}", self._at)

    def _take(self, what: str, good: Callable[[str], bool]) -> str:
        token = self._peek()
        if not token or not good(token):
            self._fail(f"expected {what}, found {token or 'the end'!r}", self._at)
        self._at += 1
        return token

    def _fail(self, problem: str, token: int) -> NoReturn:
        raise self._error(problem, token)

    def _error(self, problem: str, token: int) -> SchemaError:
        at = self._tokens[token][1] if token < len(self._tokens) else len(self._text)
        return SchemaError.bad_ddl(self._text, at, problem)
