"""Compare Headwater with Apache Flink over random programs; README.md says how to get Flink."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections import Counter
from typing import Any

from cases import KINDS, make_cases
from comparison import same
from flink import HERE, run_flink
from program import PROGRAMS, run_headwater, seen, ways
from traits import kind_of, traits_of, worth_storing

RECORDED = HERE / "recorded"
SECONDS_A_CASE = 2  # a case takes milliseconds; a trigger that fires without end is a difference like any other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--kind", choices=KINDS, action="append", help="which kind of cases; may be repeated; all if not given"
    )
    parser.add_argument("--cases", type=int, default=1000, help="how many cases of each kind to make")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same cases")
    parser.add_argument("--show", type=int, default=1, help="how many differing cases of each kind to print")
    parser.add_argument("--record", action="store_true", help=f"store small cases of the kind in {RECORDED.name}/")
    parser.add_argument("--times", type=int, default=1, help="how many stored cases shall show each trait")
    options = parser.parse_args()
    different = 0
    for kind in options.kind or KINDS:
        cases = list(make_cases(kind, options.cases, options.seed))
        begin = time.perf_counter()
        expected = run_flink(cases)
        print(f"{kind}: {len(cases)} cases on Flink in {time.perf_counter() - begin:.1f} s", flush=True)
        if options.record:
            record(kind, cases, expected, options.times)
        elif kind in PROGRAMS:
            different += compare(kind, cases, expected, options.show)
    return 1 if different else 0


def compare(kind: str, cases: list[dict[str, Any]], expected: list[dict[str, Any]], show: int) -> int:
    """Run Headwater too; print what differs and what those cases are about; how many differ."""
    signal.signal(signal.SIGALRM, _interrupt)
    begin = time.perf_counter()
    different: Counter[str] = Counter()
    for case, flink in zip(cases, expected, strict=True):
        for way in ways(case):
            headwater = _attempt(case, way)
            if "error" not in headwater and same(case, way, seen(case, way, flink), headwater):
                continue
            different[f"{way}: {kind_of(case)}"] += 1
            if different.total() <= show:
                print(json.dumps({"way": way, "case": case, "flink": flink, "headwater": headwater}), flush=True)
    seconds = time.perf_counter() - begin
    print(f"{kind}: {len(cases)} cases on Headwater in {seconds:.1f} s, {different.total()} differ", flush=True)
    for about, count in different.most_common():
        print(f"{count:6} {about}")
    return different.total()


def _attempt(case: dict[str, Any], way: str) -> dict[str, Any]:
    signal.alarm(SECONDS_A_CASE)
    try:
        return run_headwater(case, way)
    except Exception:
        return {"id": case["id"], "error": traceback.format_exc(limit=-5)}
    finally:
        signal.alarm(0)


def _interrupt(*_: object) -> None:
    raise TimeoutError(f"the case takes more than {SECONDS_A_CASE} s")


def record(kind: str, cases: list[dict[str, Any]], expected: list[dict[str, Any]], times: int) -> None:
    """Store small cases that emit something worth keeping, until every trait that occurs is among them."""
    lines = [
        (case, json.dumps(case | {"expected": {"fired": flink["fired"], "late": flink["late"]}}))
        for case, flink in zip(cases, expected, strict=True)
        if worth_storing(case, flink)
    ]
    seen: Counter[str] = Counter()
    kept: list[str] = []
    for case, line in sorted(lines, key=lambda item: len(item[1])):
        if any(seen[trait] < times for trait in traits_of(case)):
            seen.update(traits_of(case))
            kept.append(line)
    path = RECORDED / f"{kind}.jsonl"
    path.write_text("".join(f"{line}\n" for line in kept))
    print(f"{kind}: {len(kept)} cases stored in {RECORDED.name}/{path.name}")


if __name__ == "__main__":
    sys.exit(main())
