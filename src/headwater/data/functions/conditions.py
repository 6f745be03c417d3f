"""Conditions: CASE, and functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.data.functions.casts import converted
from headwater.data.functions.declared import function
from headwater.data.functions.refusals import Refused
from headwater.data.functions.terms import Call, Term
from headwater.data.functions.types import common_type


def case(conditions: Sequence[Term], values: Sequence[Term]) -> Term:
    """The value of the first condition that is true; the last value is that of ELSE."""
    dtype = common_type([value.type for value in values])
    if dtype is None:
        raise Refused(f"the results of CASE have no type in common: {', '.join(str(v.type) for v in values)}")
    for condition in conditions:
        if condition.type.kind not in ("boolean", "null"):
            raise Refused(f"a condition of CASE is boolean; got {condition.type}")
    texts = [converted(value, dtype).sql for value in values]
    branches = " ".join(f"WHEN {c.sql} THEN {text}" for c, text in zip(conditions, texts[:-1], strict=True))
    return Term(dtype, f"CASE {branches} ELSE {texts[-1]} END")


def _extreme(name: str) -> Callable[[Call], str]:
    def made(call: Call) -> str:
        nulls = " OR ".join(f"{term.sql} IS NULL" for term in call.terms)
        return f"CASE WHEN {nulls} THEN NULL ELSE {name}({', '.join(term.sql for term in call.terms)}) END"

    return made


def _nullif(call: Call) -> str:
    """Both are compared as what they have in common, and the first stays as it is."""
    dtype = common_type([term.type for term in call.terms])
    if dtype is None:
        raise Refused(f"NULLIF cannot compare {' and '.join(str(term.type) for term in call.terms)}")
    left, right = (converted(term, dtype).sql for term in call.terms)
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {call[0]} END"


CONDITIONS = (
    function(
        "COALESCE", "(T...) -> T", "coalesce({all})", "The first argument that is not NULL.", also=("IFNULL", "NVL")
    ),
    function(
        "NULLIF",
        "(T, U) -> T",
        _nullif,
        "NULL if both are equal, else the first.",
        gives=lambda t: t[0].type,
    ),
    function(
        "IF",
        "(boolean, T, T) -> T",
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        "The second if the first is true, else the third.",
    ),
    function(
        "GREATEST",
        "(O...) -> O",
        _extreme("greatest"),
        "The greatest argument; NULL if one is NULL.",
        spark="NULLs are passed over there.",
    ),
    function(
        "LEAST",
        "(O...) -> O",
        _extreme("least"),
        "The least argument; NULL if one is NULL.",
        spark="NULLs are passed over there.",
    ),
)
