"""Where statements differ from Flink's on purpose: which, and why. README.md has the reasons, too.

A rule is a regular expression over `statement :: difference`. Every rule must be needed by some recorded case.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """Differences of one kind."""

    pattern: str
    reason: str


SPREAD = "The spread of integers (STDDEV, VAR) is a DOUBLE. In Flink it is an integer, and cut off at every step."
SEVERAL = "COUNT(DISTINCT a, b) counts pairs. Flink refuses it."
APPROXIMATE = "APPROX_COUNT_DISTINCT runs over streams. Flink refuses it."
SHORT_GROUPS = "GROUP BY takes the name or the number of a column that is shown. Flink refuses both."
DIGITS = "A time of a table that is declared in Python has six digits, also as text."
BARE_NULL = "A bare NULL may stand in VALUES beside other values. Flink refuses it."
HOPS = "HOP may have a size that is no multiple of its slide. Flink refuses to aggregate it."
OFFSETS = "Windows with an offset count every row in time. Flink 2.2 fires them as if they had none, and loses rows."
ROW_NAMES = "The fields of ROW(…) are called f0, f1, …"
EMPTY_IN = "IN as a value is false over a query without rows. Flink 2.2 loses the rows that ask."
FLINK_FAILS = "Flink fails here by mistake."
EXPLAINED: tuple[Rule, ...] = (
    Rule(r":: (failed by Flink: NullPointerException|refused by Flink: .*does not support retraction)", FLINK_FAILS),
    Rule(r"TUMBLE\(TABLE orders, DESCRIPTOR\(ts\), INTERVAL '10' SECOND, INTERVAL '-?3' SECOND\).* :: rows", OFFSETS),
    Rule(r"IN \(SELECT k FROM payments WHERE paid > 1000\) AS b.* :: rows \[\] only in Flink", EMPTY_IN),
    Rule(r"ROW\(id, 'q'\).* :: columns .*row<expr", ROW_NAMES),
    Rule(r"(STDDEV|VAR)_(POP|SAMP)\((amount|id|k|c\d)\).* :: columns", SPREAD),
    Rule(r":: refused by Flink: .*only support the count of one field", SEVERAL),
    Rule(r":: refused by Flink: .*APPROX_COUNT_DISTINCT", APPROXIMATE),
    Rule(r"GROUP BY (kk|1) :: refused by Flink", SHORT_GROUPS),
    Rule(r"CAST\(dt AS STRING\).* :: rows", DIGITS),
    Rule(r"VALUES .* :: refused by Flink: .*Illegal use of 'NULL'", BARE_NULL),
    Rule(r":: refused by Flink: .*HOP table function based aggregate", HOPS),
)
NOT_YET: tuple[str, ...] = (
    "there is no function SINGLE_VALUE",
    "a left temporal join with a condition besides equalities of columns is not supported",
    "what the clock says over rows that",
    "OVER ordered by anything but a time attribute is not supported",
    "OVER needs rows that are only added",
    "ROW_NUMBER() without a bound is not supported",
    "ANY, SOME or ALL over a subquery is not supported",
    "IN as a value, or NOT IN, over columns that may be NULL, of several columns or tied by more than equalities",
    "a subquery in ON is not supported",
)
"""What we refuse and Flink has: each construct by the words of its error. Every one must be needed by some recorded case."""


def reason(statement: str, difference: str) -> Rule | None:
    """The rule that explains a difference."""
    text = f"{statement} :: {difference}"
    return next((rule for rule in EXPLAINED if re.search(rule.pattern, text, re.DOTALL)), None)


def refusal(difference: str) -> str | None:
    """What is not there yet that we refuse."""
    found = (words for words in NOT_YET if words in difference)
    return next(found, None) if difference.startswith("refused by us: ") else None
