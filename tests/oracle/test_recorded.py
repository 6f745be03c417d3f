"""Headwater emits what Flink emitted: cases that ran on Flink, with its output, after every single action."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from comparison import same
from program import PROGRAMS, run_headwater, seen, ways

RECORDED = [
    json.loads(line)
    for kind in PROGRAMS
    for line in (Path(__file__).parent / "recorded" / f"{kind}.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['kind']}-{case['id']}")
def test_headwater_emits_what_flink_emits(case: dict[str, Any]) -> None:
    for way in ways(case):
        expected, got = seen(case, way, case["expected"]), run_headwater(case, way)
        assert same(case, way, expected, got), f"{way}: expected {expected}, got {got}"
