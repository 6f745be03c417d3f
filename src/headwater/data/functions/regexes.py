"""Regular expressions in Java's syntax, as far as RE2 has the same."""

from __future__ import annotations

import re

from headwater.data.functions.declared import function
from headwater.data.functions.patterns import can_be_empty, groups_of, java_regex
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call
from headwater.data.functions.types import text_of


def _pattern(call: Call, name: str) -> str:
    """The pattern of functions for which a match of nothing would count otherwise in RE2."""
    pattern = java_regex(call.terms[1], name)
    if can_be_empty(pattern):
        raise Refused(f"{name} cannot take the pattern {pattern!r}: it matches nothing between characters")
    return pattern


def _regexp(call: Call) -> str:
    """An empty pattern matches nothing in Flink."""
    if call.terms[1].text == "":
        return f"CASE WHEN {call[0]} IS NOT NULL THEN false END"
    return f"regexp_matches({call[0]}, {text_of(java_regex(call.terms[1], 'REGEXP'))})"


def _replaced(call: Call) -> str:
    is_edge = call.terms[1].text in ("", "^", "$")
    pattern = call.terms[1].text if is_edge else _pattern(call, "REGEXP_REPLACE")
    return f"regexp_replace({call[0]}, {text_of(pattern)}, replace({call[2]}, '\\', '\\\\'), 'g')"


def _extracted(call: Call) -> str:
    """A group that took no part in a match is NULL. DuckDB gives '' for it, as for one that matched nothing."""
    pattern = java_regex(call.terms[1], "REGEXP_EXTRACT")
    group = call.terms[2].literal if len(call) == 3 else 0
    assert isinstance(group, int)
    groups = groups_of(pattern)
    if not 0 <= group <= len(groups):
        return "CAST(NULL AS VARCHAR)"
    found = f"regexp_extract({call[0]}, {text_of(pattern)}, {group})"
    if group > 0 and not can_be_empty(groups[group - 1]):
        return f"nullif({found}, '')"
    if group > 0 and re.search(r"[|]|\)[?*{]", pattern):
        raise Refused(f"REGEXP_EXTRACT cannot tell in {pattern!r} whether group {group} is empty or took no part")
    return f"CASE WHEN regexp_matches({call[0]}, {text_of(pattern)}) THEN {found} END"


def _all_extracted(call: Call) -> str:
    pattern = _pattern(call, "REGEXP_EXTRACT_ALL")
    group = call.terms[2].literal if len(call) == 3 else 1
    assert isinstance(group, int)
    if not 0 <= group <= len(groups_of(pattern)):
        return "CAST(NULL AS VARCHAR[])"
    return f"regexp_extract_all({call[0]}, {text_of(pattern)}, {group})"


def _place(call: Call) -> str:
    """As long as the text before the first match, and one more."""
    pattern = _pattern(call, "REGEXP_INSTR")
    if "^" in pattern:
        raise Refused(f"REGEXP_INSTR cannot take the pattern {pattern!r}: it has a ^")
    before = f"regexp_extract({call[0]}, {text_of(f'^((?s:.*?))(?:{pattern})')}, 1)"
    found = f"regexp_matches({call[0]}, {text_of(pattern)})"
    return f"CASE WHEN {found} THEN CAST(length({before}) + 1 AS INTEGER) WHEN {call[0]} IS NOT NULL THEN 0 END"


REGEXES = (
    function(
        "REGEXP",
        "(string, literal string) -> boolean",
        _regexp,
        "Whether a regular expression matches somewhere.",
        also=("SIMILAR",),
    ),
    function(
        "REGEXP_REPLACE",
        "(string, literal string, string) -> string",
        _replaced,
        "Each match replaced by a text.",
        spark="`$1` in the text is a group there.",
    ),
    function(
        "REGEXP_EXTRACT",
        "(string, literal string, literal int?) -> string",
        _extracted,
        "The first match, or a group of it; NULL if there is none.",
        spark="Without a third argument it is group 1 there, and '' if there is none.",
    ),
    function(
        "REGEXP_EXTRACT_ALL",
        "(string, literal string, literal int?) -> array<string>",
        _all_extracted,
        "A group, the first unless said otherwise, of every match.",
    ),
    function(
        "REGEXP_SUBSTR",
        "(string, literal string) -> string",
        lambda call: f"nullif(regexp_extract({call[0]}, {text_of(_pattern(call, 'REGEXP_SUBSTR'))}), '')",
        "The first match; NULL if there is none.",
    ),
    function(
        "REGEXP_COUNT",
        "(string, literal string) -> int",
        lambda call: f"CAST(len(regexp_extract_all({call[0]}, {text_of(_pattern(call, 'REGEXP_COUNT'))})) AS INTEGER)",
        "How often it matches.",
    ),
    function(
        "REGEXP_INSTR",
        "(string, literal string) -> int",
        _place,
        "The place of the first match, from 1; 0 if there is none.",
    ),
)
