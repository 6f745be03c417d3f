"""Expressions beside what Apache Flink gave for them: the same, or different on purpose."""

from __future__ import annotations

import json
import re
from pathlib import Path

from beside import differences, evaluate
from explained import EXPLAINED, Rule, reason
from expression_cases import CASES

from headwater.data.functions import FAMILIES

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text().split("\n") if line]


def test_expressions_give_what_flink_gives_or_differ_on_purpose() -> None:
    unexplained: list[str] = []
    used: set[Rule] = set()
    for record in RECORDED:
        table, expression = record["table"], record["expression"]
        for why in differences(record, evaluate(table, expression)):
            rule = reason(table, expression, why)
            if rule is not None:
                used.add(rule)
            else:
                unexplained.append(f"{table}: {expression} :: {why}")
    assert unexplained == []
    assert [rule for rule in EXPLAINED if rule not in used] == []


def test_what_is_recorded_is_what_is_tried() -> None:
    assert [(record["table"], record["expression"]) for record in RECORDED] == CASES


def test_every_function_is_tried() -> None:
    texts = " ".join(expression.upper() for _, expression in CASES)
    beyond_flink = {"DATE_TRUNC"}
    unwritten = {"NEGATE": "-", "PLUS": "+"}
    for family in FAMILIES.values():
        for function in family:
            words = unwritten.get(function.name, function.name).removesuffix(" TO").split()
            tried = re.search(r"\W+(\w+ )?".join(re.escape(word) for word in words), texts)
            assert tried or function.name in beyond_flink, function.name
