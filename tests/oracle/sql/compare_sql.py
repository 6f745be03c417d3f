"""Statements beside what Flink gave for them: `python tests/oracle/sql/compare_sql.py [construct …]` prints what differs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from record_sql import GENERATED, recorded
from sql_beside import difference, given
from sql_cases import CONSTRUCTS
from sql_explained import reason, refusal
from sql_tables import TABLES, has_late_rows, used

ALL = 1_000_000
Record = dict[str, Any]


def differences(records: list[Record], rows_per_epoch: int = ALL) -> Iterator[tuple[Record, str]]:
    """Cases that give something else than they gave on Flink, and what. Those with the same tables are one job."""
    together = [record for record in records if "tables" not in record]
    for record in records:
        if "tables" in record:
            yield from _of_one_job(record["tables"], [record], rows_per_epoch)
    for is_late in (False, True):
        some = [record for record in together if _is_late(used(record["statement"])) == is_late]
        names = {name for record in some for name in used(record["statement"])}
        yield from _of_one_job({name: TABLES[name] for name in TABLES if name in names}, some, rows_per_epoch)


def _of_one_job(tables: dict[str, Any], records: list[Record], rows_per_epoch: int) -> Iterator[tuple[Record, str]]:
    """Where rows are late, each is an epoch, for the watermark moves at the end of one."""
    is_late = any(has_late_rows(table) for table in tables.values())
    results = given(tables, [record["statement"] for record in records], 1 if is_late else rows_per_epoch)
    for record, result in zip(records, results, strict=True):
        found = difference(record, result)
        if found is not None:
            yield record, found


def _is_late(names: list[str]) -> bool:
    return any(has_late_rows(TABLES[name]) for name in names)


def main() -> None:
    """Print what differs and has no reason to; counts to standard error."""
    total, refused, explained, unexplained = 0, 0, 0, 0
    for name in sys.argv[1:] or [*CONSTRUCTS, GENERATED]:
        records = recorded(name)
        total += len(records)
        for record, found in differences(records):
            if reason(record["statement"], found) is not None:
                explained += 1
            elif refusal(found) is not None:
                refused += 1
                print(f"{name}: {record['statement']}\n    {found}\n")
            else:
                unexplained += 1
                print(f"{name}: {record['statement']}\n  ! {found}\n")
    print(f"{total} cases, {unexplained} differ, {explained} differ on purpose, {refused} are refused", file=sys.stderr)


if __name__ == "__main__":
    main()
