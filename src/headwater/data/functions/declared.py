"""How a function or operator is declared: its signatures, its meaning in a line, and its form in DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from headwater.data.functions.casts import converted
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import INTEGERS, Type, array, common_type, compared_type, map_of

Duckdb = str | Callable[[Call], str]
"""The form in DuckDB: a text with a place for each argument, or what makes the text of a call."""
Gives = Callable[[Sequence[Term]], Type]

_PLAIN: Final = "boolean tinyint smallint int bigint float double string binary date null"
_SIMPLE: Final = {name: Type(name) for name in _PLAIN.split()} | {
    "timestamp": Type("timestamp", 6),
    "timestamp_ltz": Type("timestamp_ltz", 6),
    "timestamp(3)": Type("timestamp", 3),
    "timestamp_ltz(3)": Type("timestamp_ltz", 3),
    "timestamp_ltz(0)": Type("timestamp_ltz", 0),
    "interval day": Type("interval day"),
    "interval month": Type("interval month"),
}
_CLASSES: Final[dict[str, Callable[[Type], bool]]] = {
    "any": lambda _: True,
    "integer": lambda t: t.is_integer,
    "exact": lambda t: t.is_exact,
    "decimal": lambda t: t.is_decimal,
    "approximate": lambda t: t.is_approximate,
    "number": lambda t: t.is_number,
    "time": lambda t: t.is_time,
    "timestamps": lambda t: t.is_timestamp,
    "interval": lambda t: t.kind.startswith("interval"),
    "row": lambda t: t.kind == "row",
    "comparable": lambda t: t.kind not in ("array", "map", "row", "binary"),
}
_LETTERS: Final[dict[str, Callable[[Type], bool]]] = {
    "N": lambda t: t.is_number,
    "I": lambda t: t.is_integer,
    "J": lambda t: t.is_integer,
    "C": lambda t: t.kind not in ("map", "interval day", "interval month"),
    "O": lambda t: t.kind not in ("array", "map", "row", "interval day", "interval month"),
}
"""Letters that stand for a type of a class; all others stand for any type."""
_COMPARED: Final = ("C", "O")
"""Letters of values that are compared: a string is read as a time where it meets one."""
_PARAMETER = re.compile(r"(?P<literal>literal )?(?P<type>.*?)(?P<many>\?|\.\.\.)?")


class Parameter(NamedTuple):
    """What one place of a signature takes."""

    type: str
    is_literal: bool = False
    is_optional: bool = False
    is_repeated: bool = False

    @classmethod
    def of(cls, text: str) -> Parameter:
        found = _PARAMETER.fullmatch(text)
        assert found is not None
        return cls(found["type"], found["literal"] is not None, found["many"] == "?", found["many"] == "...")


@dataclass(frozen=True)
class Form:
    """One signature, such as `(string, int, int?) -> string`, and its text in DuckDB.

    A capital letter stands for one type, to which all arguments with this letter are cast; a word such as `number` for any
    type of a class. `literal` takes a constant only, `?` may be left out, `...` may be repeated.
    """

    signature: str
    duckdb: Duckdb
    gives: Gives | None = None

    @cached_property
    def takes(self) -> tuple[Parameter, ...]:
        inside = self.signature[1 : self.signature.rindex(") -> ")]
        return tuple(Parameter.of(text) for text in _split(inside))

    @cached_property
    def result(self) -> str:
        return self.signature.rsplit("-> ", 1)[1]

    def fit(self, terms: Sequence[Term]) -> Term | None:
        """The call with these arguments, or None if they do not fit."""
        parameters = self._parameters(len(terms))
        if parameters is None:
            return None
        letters: dict[str, list[Type]] = {}
        for parameter, term in zip(parameters, terms, strict=True):
            if (parameter.is_literal and not term.is_literal) or not _matches(parameter.type, term.type, letters):
                return None
        known = {
            letter: (compared_type if letter in _COMPARED else common_type)(types) for letter, types in letters.items()
        }
        if None in known.values():
            return None
        resolved = {letter: found for letter, found in known.items() if found is not None}
        given = [
            converted(term, _resolved(parameter.type, term.type, resolved))
            for parameter, term in zip(parameters, terms, strict=True)
        ]
        result = self.gives(given) if self.gives is not None else _resolved(self.result, None, resolved)
        if callable(self.duckdb):
            return Term(result, self.duckdb(Call(tuple(given), result)))
        texts = [term.sql for term in given]
        return Term(result, self.duckdb.format(*texts, all=", ".join(texts), type=result.duckdb))

    def _parameters(self, count: int) -> list[Parameter] | None:
        takes = list(self.takes)
        needed = sum(not p.is_optional for p in takes)  # what may be repeated is there once
        if takes and takes[-1].is_repeated:
            return takes + [takes[-1]] * (count - len(takes)) if count >= needed else None
        return takes[:count] if needed <= count <= len(takes) else None


@dataclass(frozen=True)
class Function:
    """A function or operator that expressions may use."""

    name: str
    forms: tuple[Form, ...]
    meaning: str
    also: tuple[str, ...] = ()
    spark: str = ""
    """Where Spark's function of this name means something else."""
    written: str = ""
    """How it is written, where that is not `NAME(a, b)`."""
    cases: tuple[str, ...] = field(default=(), compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)


def function(
    name: str, signature: str, duckdb: Duckdb, meaning: str, *more: tuple[str, Duckdb], **others: Any
) -> Function:
    """A function by its first signature; `more` are other signatures with their forms in DuckDB."""
    gives = others.pop("gives", None)
    forms = [Form(signature, duckdb, gives), *(Form(text, form, gives) for text, form in more)]
    return Function(name, tuple(forms), meaning, **others)


def _split(text: str) -> list[str]:
    """The parts of a list between commas, but for those inside of angles or parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _matches(pattern: str, given: Type, letters: dict[str, list[Type]]) -> bool:
    if len(pattern) == 1:
        letters.setdefault(pattern, []).append(given)
        return given.is_null or pattern not in _LETTERS or _LETTERS[pattern](given)
    if pattern.endswith(">"):
        kind, inside = pattern[:-1].split("<", 1)
        inner = _split(inside)
        if given.is_null:
            return all(_matches(part, given, letters) for part in inner)
        return given.kind == kind and all(_matches(p, t, letters) for p, t in zip(inner, given.parts, strict=True))
    if given.is_null:
        return pattern not in ("exact", "decimal")
    if pattern in _CLASSES:
        return _CLASSES[pattern](given)
    wanted = _SIMPLE[pattern]
    if wanted.kind in INTEGERS:
        return given.is_integer and INTEGERS.index(given.kind) <= INTEGERS.index(wanted.kind)
    if wanted.kind in ("double", "float"):
        return given.is_number
    return given.kind == wanted.kind


def _resolved(pattern: str, given: Type | None, letters: dict[str, Type]) -> Type:
    if len(pattern) == 1:
        return letters[pattern]
    if pattern.startswith("array<"):
        return array(_resolved(pattern[6:-1], given.item if given is not None and given.parts else None, letters))
    if pattern.startswith("map<"):
        key, value = _split(pattern[4:-1])
        return map_of(_resolved(key, None, letters), _resolved(value, None, letters))
    if pattern in _CLASSES:
        assert given is not None
        return given
    wanted = _SIMPLE[pattern]
    return given if given is not None and given.kind == wanted.kind else wanted
