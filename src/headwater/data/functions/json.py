"""JSON in strings. Paths are those that DuckDB and Flink read alike: names and indexes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headwater.data.functions.declared import Form, Function, function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import BOOLEAN, DOUBLE, INT, STRING, Type, text_of

_PATH: Final = re.compile(r"(?:strict\s+|lax\s+)?(\$(?:\.[A-Za-z_][A-Za-z_0-9]*|\[\d+\])*)")
_RETURNED: Final = {"string": STRING, "int": INT, "double": DOUBLE, "boolean": BOOLEAN}
_KINDS: Final = {"int": ("BIGINT", "UBIGINT"), "double": ("DOUBLE",), "boolean": ("BOOLEAN",)}
_NESTED: Final = "('OBJECT', 'ARRAY')"


def _path(term: Term, name: str) -> str:
    found = _PATH.fullmatch(term.text)
    if found is None:
        raise Refused(f"{name} cannot take the path {term.text!r}; it takes names and indexes, as in '$.a.b[0]'")
    return text_of(found[1])


def _clauses(terms: Sequence[Term], name: str, known: Sequence[str]) -> dict[str, Term]:
    """The clauses behind the path, by their first words, such as `ON ERROR`."""
    found = {}
    for term in terms[2:]:
        word = next((word for word in known if term.text == word or term.text.startswith(f"{word} ")), None)
        if word is None:
            raise Refused(f"{name} does not take {term.text}")
        if terms[1].text.startswith("lax") and word.startswith("ON "):
            raise Refused(f"{name} with a lax path takes no clause {word}")
        found[word] = term
    return found


def _said(clauses: dict[str, Term], word: str, otherwise: str) -> str:
    return clauses[word].text.removeprefix(f"{word} ") if word in clauses else otherwise


def _kind(call: Call, path: str) -> str:
    """What JSON has at the path; NULL if the text is no JSON, or has nothing or null there."""
    return f"CASE WHEN json_valid({call[0]}) THEN nullif(json_type({call[0]}, {path}), 'NULL') END"


def _failing(call: Call, said: str, clause: Term | None, choices: dict[str, str]) -> str:
    if said == "ERROR":
        return f"error('there is no such value in the JSON ' || {call[0]})"
    if said == "DEFAULT" and clause is not None and clause.type == call.type:
        return clause.sql
    if said not in choices:
        raise Refused(f"{said} ON ERROR is not for this function, or has another type than its result")
    return choices[said]


def _value_type(terms: Sequence[Term]) -> Type:
    said = _said(_clauses(terms, "JSON_VALUE", ("RETURNING", "ON EMPTY", "ON ERROR")), "RETURNING", "string")
    if said not in _RETURNED:
        raise Refused(f"JSON_VALUE returns STRING, INT, DOUBLE or BOOLEAN; got {said}")
    return _RETURNED[said]


def _value(call: Call) -> str:
    clauses = _clauses(call.terms, "JSON_VALUE", ("RETURNING", "ON EMPTY", "ON ERROR"))
    path = _path(call.terms[1], "JSON_VALUE")
    failing = _failing(call, _said(clauses, "ON ERROR", "NULL"), clauses.get("ON ERROR"), {"NULL": "NULL"})
    kind, found = _kind(call, path), f"json_extract_string({call[0]}, {path})"
    if call.type.kind in _KINDS:
        kinds = ", ".join(text_of(kind) for kind in _KINDS[call.type.kind])
        wrong = f"error('no {call.type} in the JSON ' || {call[0]})"
        found = f"CASE WHEN {kind} IN ({kinds}) THEN CAST({found} AS {call.type.duckdb}) ELSE {wrong} END"
    return f"CASE WHEN {kind} NOT IN {_NESTED} THEN {found} WHEN {call[0]} IS NOT NULL THEN {failing} END"


def _query(call: Call) -> str:
    clauses = _clauses(call.terms, "JSON_QUERY", ("WRAPPER", "ON EMPTY", "ON ERROR"))
    path = _path(call.terms[1], "JSON_QUERY")
    choices = {"NULL": "NULL", "EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'"}
    failing = _failing(call, _said(clauses, "ON ERROR", "NULL"), None, choices)
    kind, found = _kind(call, path), f"CAST(json_extract({call[0]}, {path}) AS VARCHAR)"
    wrapper = _said(clauses, "WRAPPER", "WITHOUT").replace(" ARRAY", "")
    wrapped = f"'[' || {found} || ']'"
    made = {
        "WITHOUT": f"WHEN {kind} IN {_NESTED} THEN {found}",
        "WITH": f"WHEN {kind} IS NOT NULL THEN {wrapped}",
        "WITH UNCONDITIONAL": f"WHEN {kind} IS NOT NULL THEN {wrapped}",
        "WITH CONDITIONAL": f"WHEN {kind} = 'ARRAY' THEN {found} WHEN {kind} IS NOT NULL THEN {wrapped}",
    }.get(wrapper)
    if made is None:
        raise Refused(f"JSON_QUERY does not take {wrapper} WRAPPER")
    return f"CASE {made} WHEN {call[0]} IS NOT NULL THEN {failing} END"


def _exists(call: Call) -> str:
    clauses = _clauses(call.terms, "JSON_EXISTS", ("ON ERROR",))
    choices = {"TRUE": "true", "FALSE": "false", "UNKNOWN": "NULL"}
    failing = _failing(call, _said(clauses, "ON ERROR", "FALSE"), None, choices)
    kind = _kind(call, _path(call.terms[1], "JSON_EXISTS"))
    return f"CASE WHEN {kind} IS NOT NULL THEN true WHEN {call[0]} IS NOT NULL THEN {failing} END"


def _test(word: str, condition: str, meaning: str) -> list[Function]:
    made = f"coalesce(CASE WHEN json_valid({{0}}) THEN {condition} END, false)"
    takes = "(string) -> boolean"
    return [
        Function(f"IS {word}", (Form(takes, made),), f"Whether it is {meaning}.", written=f"a IS {word}"),
        Function(
            f"IS NOT {word}",
            (Form(takes, f"(NOT {made})"),),
            f"Whether it is not {meaning}.",
            written=f"a IS NOT {word}",
        ),
    ]


JSON = (
    function(
        "JSON_VALUE",
        "(string, literal string, literal any...) -> string",
        _value,
        "The value at a path; NULL if there is none, or an array or object.",
        ("(string, literal string) -> string", _value),
        written="JSON_VALUE(a, path [RETURNING type] [{NULL | ERROR | DEFAULT b} ON ERROR])",
        gives=_value_type,
    ),
    function(
        "JSON_QUERY",
        "(string, literal string, literal any...) -> string",
        _query,
        "The array or object at a path, as JSON; NULL if there is none.",
        ("(string, literal string) -> string", _query),
        written="JSON_QUERY(a, path [{WITHOUT | WITH [CONDITIONAL]} WRAPPER] "
        "[{NULL | ERROR | EMPTY ARRAY | EMPTY OBJECT} ON ERROR])",
    ),
    function(
        "JSON_EXISTS",
        "(string, literal string, literal any...) -> boolean",
        _exists,
        "Whether there is something but null at a path.",
        ("(string, literal string) -> boolean", _exists),
        written="JSON_EXISTS(a, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
    ),
    *_test("JSON", "true", "JSON"),
    *_test("JSON VALUE", "true", "JSON"),
    *_test("JSON SCALAR", f"json_type({{0}}) NOT IN {_NESTED}", "JSON of one value"),
    *_test("JSON ARRAY", "json_type({0}) = 'ARRAY'", "a JSON array"),
    *_test("JSON OBJECT", "json_type({0}) = 'OBJECT'", "a JSON object"),
)
