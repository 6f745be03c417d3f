"""Arrays. Places count from 1."""

from __future__ import annotations

from headwater.data.functions.declared import function
from headwater.data.functions.terms import Call


def _concatenated(call: Call) -> str:
    nulls = " OR ".join(f"{text} IS NULL" for text in call.texts)
    return f"CASE WHEN {nulls} THEN NULL ELSE list_concat({', '.join(call.texts)}) END"


def _distinct(sql: str) -> str:
    """The items that are the first of their kind, in order."""
    before = "lambda __other: __other IS NOT DISTINCT FROM __item"
    return f"list_filter({sql}, lambda __item, __place: len(list_filter({sql}[:__place - 1], {before})) = 0)"


def _found_in(call: Call, times: str) -> str:
    """The items of the first array that are so often in the second."""
    same = "lambda __same: __same IS NOT DISTINCT FROM __one"
    found = f"list_filter({call[0]}, lambda __one: len(list_filter({call[1]}, {same})) {times})"
    return f"(CASE WHEN {call[1]} IS NOT NULL THEN {found} END)"


def _sliced(call: Call) -> str:
    end = call[2] if len(call) == 3 else f"len({call[0]})"
    return f"list_slice({call[0]}, {call[1]}, {end})"


def _sorted(call: Call) -> str:
    is_rising = call.terms[1].literal is not False if len(call) > 1 else True
    nulls_first = call.terms[2].literal is True if len(call) > 2 else is_rising
    nulls = "FIRST" if nulls_first else "LAST"
    return f"list_sort({call[0]}, '{'ASC' if is_rising else 'DESC'}', 'NULLS {nulls}')"


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
        lambda call: _distinct(call[0]),
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
    function(
        "ARRAY_SLICE",
        "(array<T>, int, int?) -> array<T>",
        _sliced,
        "The items from one place to another; negative places count from the end.",
    ),
    function(
        "ARRAY_SORT",
        "(array<O>, literal boolean?, literal boolean?) -> array<O>",
        _sorted,
        "The items in order: ascending unless the second is FALSE, NULLs first if ascending or the third is TRUE.",
        spark="`sort_array` there; `array_sort` puts NULLs last.",
    ),
    function(
        "ARRAY_UNION",
        "(array<T>, array<T>) -> array<T>",
        lambda call: (
            f"CASE WHEN {call[0]} IS NOT NULL AND {call[1]} IS NOT NULL THEN "
            f"{_distinct(f'list_concat({call[0]}, {call[1]})')} END"
        ),
        "The items of both, each once.",
    ),
    function(
        "ARRAY_EXCEPT",
        "(array<T>, array<T>) -> array<T>",
        lambda call: _distinct(_found_in(call, "= 0")),
        "The items of the first that the second does not have, each once.",
    ),
    function(
        "ARRAY_INTERSECT",
        "(array<T>, array<T>) -> array<T>",
        lambda call: _distinct(_found_in(call, "> 0")),
        "The items of the first that the second has too, each once.",
    ),
)
