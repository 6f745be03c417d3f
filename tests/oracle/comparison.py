"""Whether two runs of a case emitted the same, as far as Flink promises an order."""

from __future__ import annotations

from typing import Any


def same(case: dict[str, Any], expected: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether every action led to the same results, in the same order for each key and window, and to the same late rows.

    Between keys, and between the windows of a key, Flink promises no order; nor for the rows of sessions that merged.
    """
    merges = case["window"]["kind"] == "session"
    return expected["late"] == got["late"] and _ordered(expected, merges) == _ordered(got, merges)


def _ordered(output: dict[str, Any], merges: bool) -> list[Any]:
    fired = [
        (step, key, start, end, sorted(values) if merges else values, timestamp)
        for step, key, start, end, values, timestamp in output["fired"]
    ]
    return sorted(fired, key=lambda result: (result[0], result[1], result[2] or 0, result[3] or 0))
