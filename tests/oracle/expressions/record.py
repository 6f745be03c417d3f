"""Records what Apache Flink gives for every case: `FLINK_JARS=… python tests/oracle/expressions/record.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from expression_cases import CASES
from expression_tables import TABLES

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.jsonl"
OPENED = ("java.lang", "java.util", "java.util.concurrent.atomic", "java.time")  # Flink copies rows by reflection


def main() -> None:
    """With `--new` only cases that are not recorded yet run on Flink."""
    jars = os.environ.get("FLINK_JARS")
    if not jars:
        raise SystemExit(f"the recorder needs Flink's jars; FLINK_JARS is not set; see {HERE.parent / 'README.md'}")
    known: dict[tuple[str, str], dict[str, Any]] = {}
    if "--new" in sys.argv:
        for line in RECORDED.read_text().splitlines():
            record = json.loads(line)
            known[record["table"], record["expression"]] = record
    asked = [case for case in CASES if case not in known]
    for (table, expression), result in zip(asked, run_flink(jars, asked), strict=True):
        known[table, expression] = {"table": table, "expression": expression, **result}
    RECORDED.write_text("".join(json.dumps(known[case], ensure_ascii=False) + "\n" for case in CASES))


def run_flink(jars: str, cases: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What each case gives on Flink, in one JVM."""
    tables = [{"name": name, "columns": table.flink, "rows": table.rows} for name, table in TABLES.items()]
    lines = [json.dumps(tables), *(json.dumps({"table": name, "expression": text}) for name, text in cases)]
    with tempfile.TemporaryDirectory() as classes:
        source = str(HERE / "FlinkExpressions.java")
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", f"{jars}/*", source], check=True)
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        done = subprocess.run(
            [
                "java",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                *opened,
                "-cp",
                f"{classes}:{jars}/*",
                "FlinkExpressions",
            ],
            input="".join(line + "\n" for line in lines),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            check=True,
        )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


if __name__ == "__main__":
    main()
