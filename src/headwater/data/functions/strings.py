"""Strings. Positions count characters, from 1."""

from __future__ import annotations

from collections.abc import Callable

from headwater.data.functions.declared import function
from headwater.data.functions.terms import Call


def _substring(call: Call) -> str:
    """From 0 it starts at 1; from a negative position, so many characters before the end."""
    text, start = call[0], call[1]
    if len(call) == 2:
        return f"substring({text}, CASE WHEN {start} = 0 THEN 1 ELSE {start} END)"
    length = call[2]
    if (
        isinstance(call.terms[1].literal, int)
        and call.terms[1].literal > 0
        and isinstance(call.terms[2].literal, int)
        and call.terms[2].literal >= 0
    ):
        return f"substring({text}, {start}, {length})"
    begin = f"CASE WHEN {start} > 0 THEN {start} WHEN {start} = 0 THEN 1 ELSE length({text}) + {start} + 1 END"
    nothing = f"CASE WHEN {text} IS NOT NULL AND {length} >= 0 THEN '' END"
    return f"CASE WHEN {length} < 0 OR {begin} < 1 THEN {nothing} ELSE substring({text}, {begin}, {length}) END"


def _padded(name: str) -> Callable[[Call], str]:
    def made(call: Call) -> str:
        text, length, pad = (term.sql for term in call.terms)
        return f"CASE WHEN {length} < 0 OR {pad} = '' THEN NULL ELSE {name}({text}, {length}, {pad}) END"

    return made


def _replaced(call: Call) -> str:
    """An empty string is found around every character."""
    text, search, other = call.texts
    if call.terms[1].is_literal and call.terms[1].literal:
        return f"replace({text}, {search}, {other})"
    between = f"{other} || array_to_string(string_split({text}, ''), '\0') || {other}"
    around = f"CASE WHEN {text} = '' THEN {other} ELSE replace({between}, '\0', {other}) END"
    return f"CASE WHEN {search} = '' THEN {around} ELSE replace({text}, {search}, {other}) END"


def _initcap(call: Call) -> str:
    words = f"regexp_extract_all({call[0]}, '[A-Za-z0-9]+|[^A-Za-z0-9]+')"
    word = "upper(__word[1]) || lower(__word[2:])"
    made = f"CASE WHEN regexp_matches(__word, '^[A-Za-z0-9]') THEN {word} ELSE __word END"
    return f"array_to_string(list_transform({words}, lambda __word: {made}), '')"


def _overlaid(call: Call) -> str:
    text, other, start = call.texts[:3]
    count = call[3] if len(call) == 4 else f"length({other})"
    return (
        f"CASE WHEN {start} <= 0 OR {start} > length({text}) THEN {text} "
        f"ELSE left({text}, {start} - 1) || {other} || CASE WHEN {count} > 0 THEN {text}[{start} + {count}:] ELSE '' END END"
    )


def _located(call: Call) -> str:
    search, text, start = call.texts
    found = f"strpos({text}[greatest({start}, 1):], {search})"
    return f"CAST(CASE WHEN {found} = 0 THEN 0 ELSE {found} + greatest({start}, 1) - 1 END AS INTEGER)"


STRINGS = (
    function("UPPER", "(string) -> string", "upper({0})", "In upper case.", also=("UCASE",)),
    function("LOWER", "(string) -> string", "lower({0})", "In lower case.", also=("LCASE",)),
    function(
        "CHAR_LENGTH",
        "(string) -> int",
        "CAST(length({0}) AS INTEGER)",
        "How many characters.",
        also=("CHARACTER_LENGTH", "LENGTH"),
    ),
    function(
        "CONCAT",
        "(string...) -> string",
        lambda call: f"({' || '.join(call.texts)})",
        "All strings, one behind the other; NULL if one is NULL.",
    ),
    function(
        "CONCAT_WS",
        "(string, string...) -> string",
        lambda call: f"CASE WHEN {call[0]} IS NOT NULL THEN concat_ws({', '.join(call.texts)}) END",
        "All strings with the first between them; NULLs are passed over.",
    ),
    function(
        "SUBSTRING",
        "(string, int, int?) -> string",
        _substring,
        "From a position on, so many characters: from 0 as from 1, from a negative one so many before the end.",
        also=("SUBSTR",),
        written="SUBSTRING(a FROM b [FOR c])",
    ),
    function(
        "LEFT",
        "(string, int) -> string",
        "CASE WHEN {1} <= 0 THEN (CASE WHEN {0} IS NOT NULL THEN '' END) ELSE left({0}, {1}) END",
        "The first characters.",
    ),
    function(
        "RIGHT",
        "(string, int) -> string",
        "CASE WHEN {1} <= 0 THEN (CASE WHEN {0} IS NOT NULL THEN '' END) ELSE right({0}, {1}) END",
        "The last characters.",
    ),
    function(
        "TRIM",
        "(string) -> string",
        "trim({0}, ' ')",
        "Without spaces, or another string, on both sides.",
        ("(string, string) -> string", "trim({0}, {1})"),
        written="TRIM([BOTH] [a FROM] b)",
    ),
    function(
        "TRIM LEADING",
        "(string) -> string",
        "ltrim({0}, ' ')",
        "Without them on the left.",
        ("(string, string) -> string", "ltrim({0}, {1})"),
        written="TRIM(LEADING [a FROM] b)",
        also=("LTRIM",),
    ),
    function(
        "TRIM TRAILING",
        "(string) -> string",
        "rtrim({0}, ' ')",
        "Without them on the right.",
        ("(string, string) -> string", "rtrim({0}, {1})"),
        written="TRIM(TRAILING [a FROM] b)",
        also=("RTRIM",),
    ),
    function(
        "BTRIM",
        "(string) -> string",
        "trim({0}, ' ')",
        "Without spaces, or the characters of the second string, on both sides.",
        ("(string, string) -> string", "trim({0}, {1})"),
    ),
    function(
        "POSITION",
        "(string, string) -> int",
        "CAST(strpos({1}, {0}) AS INTEGER)",
        "Where the first string is in the second; 0 if nowhere.",
        written="POSITION(a IN b)",
    ),
    function(
        "LOCATE",
        "(string, string) -> int",
        "CAST(strpos({1}, {0}) AS INTEGER)",
        "Where the first string is in the second, from a position on; 0 if nowhere.",
        ("(string, string, int) -> int", _located),
    ),
    function(
        "INSTR",
        "(string, string) -> int",
        "CAST(strpos({0}, {1}) AS INTEGER)",
        "Where the second string is in the first; 0 if nowhere.",
    ),
    function(
        "OVERLAY",
        "(string, string, int, int?) -> string",
        _overlaid,
        "The first string with the second in place of so many characters from a position on.",
        written="OVERLAY(a PLACING b FROM c [FOR d])",
    ),
    function(
        "REPLACE",
        "(string, string, string) -> string",
        _replaced,
        "The string with the third in place of each second.",
    ),
    function(
        "TRANSLATE",
        "(string, string, string) -> string",
        "translate({0}, {1}, {2})",
        "Each character of the second string as that at its place in the third.",
    ),
    function("REPEAT", "(string, int) -> string", "repeat({0}, greatest({1}, 0))", "The string so many times."),
    function("REVERSE", "(string) -> string", "reverse({0})", "The characters from the last to the first."),
    function("INITCAP", "(string) -> string", _initcap, "Each word with its first letter in upper case."),
    function(
        "LPAD", "(string, int, string) -> string", _padded("lpad"), "Filled up on the left to a length, or cut to it."
    ),
    function(
        "RPAD", "(string, int, string) -> string", _padded("rpad"), "Filled up on the right to a length, or cut to it."
    ),
    function(
        "ASCII", "(string) -> int", "CASE WHEN {0} = '' THEN 0 ELSE ascii({0}) END", "The code of the first character."
    ),
    function(
        "CHR",
        "(integer) -> string",
        "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END",
        "The character with this code.",
    ),
    function(
        "SPLIT",
        "(string, string) -> array<string>",
        "CASE WHEN {0} = '' THEN [] ELSE string_split({0}, {1}) END",
        "The parts between separators.",
    ),
    function(
        "SPLIT_INDEX",
        "(string, string, int) -> string",
        "CASE WHEN {2} >= 0 AND {0} <> '' THEN list_extract("
        "CASE WHEN {1} = '' THEN [{0}] ELSE string_split({0}, {1}) END, {2} + 1) END",
        "The part at a place, counted from 0, between separators.",
    ),
    function(
        "STARTSWITH",
        "(string, string) -> boolean",
        "starts_with({0}, {1})",
        "Whether the first string begins with the second.",
    ),
    function(
        "ENDSWITH",
        "(string, string) -> boolean",
        "ends_with({0}, {1})",
        "Whether the first string ends with the second.",
    ),
    function(
        "IS_ALPHA",
        "(string) -> boolean",
        r"coalesce(regexp_full_match({0}, '\pL+'), false)",
        "Whether it is letters only; false for NULL.",
    ),
    function(
        "IS_DIGIT",
        "(string) -> boolean",
        "coalesce(regexp_full_match({0}, '[0-9]+'), false)",
        "Whether it is digits only; false for NULL.",
    ),
    function(
        "ELT",
        "(int, string...) -> string",
        lambda call: f"CASE WHEN {call[0]} > 0 THEN list_extract([{', '.join(call.texts[1:])}], {call[0]}) END",
        "The string at a place among those that follow; NULL if there is none.",
    ),
)
