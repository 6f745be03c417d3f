"""Patterns: LIKE, SIMILAR TO, and regular expressions in Java's syntax, which DuckDB runs with RE2."""

from __future__ import annotations

import re
from typing import Final

from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import text_of

_NOT_RE2: Final = (
    (r"\(\?[=!]|\(\?<[=!]", "looks ahead or behind"),
    (r"\\[1-9]|\\k<", "refers back to a group"),
    (r"[*+?}]\+", "has a possessive quantifier"),
    (r"\(\?>", "has an atomic group"),
    (r"&&", "has an intersection of classes"),
    (r"\[[^\]]*\[(?!:)", "has a class inside of a class"),
    (r"\\[GZRXhHVNcxue0]", "has an escape that RE2 does not know or knows as something else"),
    (
        r"\\p\{(?!L|Lu|Ll|N|Nd|P|Alpha|Digit|Upper|Lower|Punct|Alnum|Space)",
        "has a class of characters that RE2 does not know",
    ),
    (r"\$(?!$|\)|\|)", "has a $ in the middle"),
)
"""What Java's regular expressions have and RE2 has not, or has with another meaning."""
_CLASS: Final = re.compile(r"\[\[:\w+:\]\]|\\[pP](\{\w+\}|\w)")
_POSIX: Final = {
    name: f"[[:{name.lower()}:]]" for name in ("Alpha", "Digit", "Upper", "Lower", "Punct", "Alnum", "Space")
}


def java_regex(term: Term, function: str) -> str:
    """A literal regular expression of Java's as RE2 reads it."""
    pattern = term.text
    for sign, why in _NOT_RE2:
        if re.search(sign, _without_escaped_backslashes(pattern)):
            raise Refused(f"{function} cannot take the pattern {pattern!r}: it {why}")
    for name, posix in _POSIX.items():
        pattern = pattern.replace(f"\\p{{{name}}}", posix)
    pattern = pattern.replace("(?<", "(?P<")
    can_be_empty(pattern)  # that it can be read at all
    return pattern


def _without_escaped_backslashes(pattern: str) -> str:
    return pattern.replace("\\\\", "")


def can_be_empty(pattern: str) -> bool:
    """Whether a regular expression matches a text of no characters."""
    try:
        return re.fullmatch(_CLASS.sub("[a-z]", pattern), "") is not None
    except re.error as error:
        raise Refused(f"the pattern {pattern!r} cannot be read: {error}") from None


def groups_of(pattern: str) -> list[str]:
    """The insides of a regular expression's groups, in their order."""
    found: list[str] = []
    waiting: list[tuple[int | None, int]] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if pattern[at] == "[":
            at = pattern.index("]", at + 2 if pattern[at + 1 : at + 2] != "^" else at + 3) + 1
            continue
        if pattern[at] == "(":
            is_named = pattern.startswith("(?P<", at)
            is_group = is_named or not pattern.startswith("(?", at)
            start = (pattern.index(">", at) if is_named else at) + 1
            waiting.append((len(found) if is_group else None, start))
            if is_group:
                found.append("")
        elif pattern[at] == ")" and waiting:
            number, start = waiting.pop()
            if number is not None:
                found[number] = pattern[start:at]
        at += 1
    return found


def like(call: Call) -> str:
    """`a LIKE b ESCAPE c`: without ESCAPE no character makes others plain."""
    if len(call) == 2:
        return f"({call[0]} LIKE {call[1]})"
    if len(call.terms[2].text) != 1:
        raise Refused(f"ESCAPE takes one character; got {call.terms[2].text!r}")
    return f"({call[0]} LIKE {call[1]} ESCAPE {call[2]})"


def similar_to(call: Call) -> str:
    """SQL's regular expressions: % and _ as in LIKE, and what else is the same in RE2."""
    pattern, made, is_in_class = call.terms[1].text, "", False
    for character in pattern:
        if character == "[":
            is_in_class = True
        elif character == "]":
            is_in_class = False
        if is_in_class:
            made += character
        elif character in "\\^$.":
            raise Refused(f"SIMILAR TO cannot take the pattern {pattern!r}: it has a {character}")
        else:
            made += {"%": "(?s:.*)", "_": "(?s:.)"}.get(character, character)
    return f"regexp_full_match({call[0]}, {text_of(made)})"
