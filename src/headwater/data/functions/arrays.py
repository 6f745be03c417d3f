"""Arrays. Places count from 1."""

from __future__ import annotations

from headwater.data.functions.declared import function
from headwater.data.functions.terms import Call


def _concatenated(call: Call) -> str:
    nulls = " OR ".join(f"{text} IS NULL" for text in call.texts)
    return f"CASE WHEN {nulls} THEN NULL ELSE list_concat({', '.join(call.texts)}) END"


ARRAYS = (
    function("ARRAY", "(T...) -> array<T>", "[{all}]", "An array of values.", written="ARRAY[a, b]"),
    function(
        "CARDINALITY",
        "(array<T>) -> int",
        "CAST(len({0}) AS INTEGER)",
        "How many items or pairs.",
        ("(map<K, V>) -> int", "CAST(cardinality({0}) AS INTEGER)"),
        also=("SIZE",),
        spark="`size(NULL)` is -1 in old versions.",
    ),
    function(
        "ARRAY_CONTAINS",
        "(array<T>, T) -> boolean",
        "CASE WHEN {1} IS NULL THEN len(list_filter({0}, lambda __item: __item IS NULL)) > 0 ELSE list_contains({0}, {1}) END",
        "Whether a value is an item.",
    ),
    function(
        "ARRAY_POSITION",
        "(array<T>, T) -> int",
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE coalesce(list_position({0}, {1}), 0) END",
        "The place of a value; 0 if it is no item.",
    ),
    function(
        "ARRAY_DISTINCT",
        "(array<T>) -> array<T>",
        "list_filter({0}, lambda __item, __place: len(list_filter({0}[:__place - 1], lambda __other: "
        "__other IS NOT DISTINCT FROM __item)) = 0)",
        "Without items that came before; NULL is an item.",
    ),
    function("ARRAY_REVERSE", "(array<T>) -> array<T>", "list_reverse({0})", "The items from the last to the first."),
    function(
        "ARRAY_CONCAT",
        "(array<T>...) -> array<T>",
        _concatenated,
        "The items of all arrays; NULL if one is NULL.",
    ),
    function(
        "ARRAY_APPEND",
        "(array<T>, T) -> array<T>",
        "CASE WHEN {0} IS NOT NULL THEN list_append({0}, {1}) END",
        "With a value behind it.",
    ),
    function(
        "ARRAY_PREPEND",
        "(array<T>, T) -> array<T>",
        "CASE WHEN {0} IS NOT NULL THEN list_prepend({1}, {0}) END",
        "With a value before it.",
    ),
    function(
        "ARRAY_REMOVE",
        "(array<T>, T) -> array<T>",
        "list_filter({0}, lambda __item: __item IS DISTINCT FROM {1})",
        "Without the items that equal a value.",
    ),
    function("ARRAY_MAX", "(array<T>) -> T", "list_max({0})", "The greatest item; NULLs are passed over."),
    function("ARRAY_MIN", "(array<T>) -> T", "list_min({0})", "The least item; NULLs are passed over."),
    function(
        "ARRAY_JOIN",
        "(array<string>, literal string) -> string",
        "array_to_string({0}, {1})",
        "The items with a string between them; NULLs are passed over, or written as the third string.",
        (
            "(array<string>, literal string, string) -> string",
            "array_to_string(list_transform({0}, lambda __item: coalesce(__item, {2})), {1})",
        ),
    ),
    function(
        "ELEMENT",
        "(array<T>) -> T",
        "CASE WHEN len({0}) > 1 THEN error('ELEMENT takes an array of one item') ELSE list_extract({0}, 1) END",
        "The only item; NULL if there is none.",
    ),
)
