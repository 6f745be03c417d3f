"""Maps and rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.data.functions.declared import Form, Function, function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import Type, array, text_of


def _row(terms: Sequence[Term]) -> Type:
    return Type("row", parts=tuple(t.type for t in terms), names=tuple(f"f{at}" for at in range(len(terms))))


def _packed(call: Call) -> str:
    return "{" + ", ".join(f"'f{at}': {term.sql}" for at, term in enumerate(call.terms)) + "}"


def _read_map(call: Call) -> str:
    """A key without a value has NULL. What is empty at the end counts for nothing."""
    between, inside = (term.text for term in call.terms[1:]) if len(call) == 3 else (",", "=")
    if not all(re.fullmatch(r"[^\\\[\](){}.*+?^$|]", text) for text in (between, inside)):
        raise Refused("STR_TO_MAP takes single characters that mean nothing in regular expressions")
    place = f"strpos(__part, {text_of(inside)})"
    pair = (
        f"{{'key': CASE WHEN {place} > 0 THEN __part[:{place} - 1] ELSE __part END, "
        f"'value': CASE WHEN {place} > 0 THEN __part[{place} + 1:] END}}"
    )
    parts = (
        f"list_transform(string_split(rtrim({call[0]}, {text_of(between)}), {text_of(between)}), lambda __part: {pair})"
    )
    return f"CASE WHEN {call[0]} = '' THEN map([]::VARCHAR[], []::VARCHAR[]) ELSE map_from_entries({parts}) END"


MAPS = (
    Function(
        "MAP",
        tuple(
            Form(
                f"({', '.join(['K, V'] * pairs)}) -> map<K, V>",
                lambda call: f"map([{', '.join(call.texts[::2])}], [{', '.join(call.texts[1::2])}])",
            )
            for pairs in range(1, 9)
        ),
        "A map of keys and values, eight at most.",
        written="MAP[key, value, …]",
    ),
    function("MAP_KEYS", "(map<K, V>) -> array<K>", "map_keys({0})", "The keys."),
    function("MAP_VALUES", "(map<K, V>) -> array<V>", "map_values({0})", "The values."),
    function(
        "MAP_FROM_ARRAYS",
        "(array<K>, array<V>) -> map<K, V>",
        "map({0}, {1})",
        "A map of an array of keys and one of values.",
    ),
    function(
        "MAP_ENTRIES",
        "(map<K, V>) -> array<row>",
        "map_entries({0})",
        "The pairs, as rows of key and value.",
        gives=lambda terms: array(Type("row", parts=terms[0].type.parts, names=("key", "value"))),
    ),
    function(
        "MAP_UNION",
        "(map<K, V>, map<K, V>) -> map<K, V>",
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN map_concat({0}, {1}) END",
        "The pairs of both; where a key is in both, that of the second.",
    ),
    function(
        "STR_TO_MAP",
        "(string) -> map<string, string>",
        _read_map,
        "A map out of text such as `a=1,b=2`, perhaps with other characters between pairs, and keys and values.",
        ("(string, literal string, literal string) -> map<string, string>", _read_map),
    ),
    function("ROW", "(any...) -> row", _packed, "A row of values, whose fields are f0, f1, …", gives=_row),
)
