"""Maps and rows."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.data.functions.declared import Form, Function, function
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import Type


def _row(terms: Sequence[Term]) -> Type:
    return Type("row", parts=tuple(t.type for t in terms), names=tuple(f"f{at}" for at in range(len(terms))))


def _packed(call: Call) -> str:
    return "{" + ", ".join(f"'f{at}': {term.sql}" for at, term in enumerate(call.terms)) + "}"


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
    function("ROW", "(any...) -> row", _packed, "A row of values, whose fields are f0, f1, …", gives=_row),
)
