"""Records what Apache Flink gives for statements: `FLINK_JARS=… python tests/oracle/sql/record_sql.py`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sql_cases import CONSTRUCTS, case, written
from sql_generated import cases

HERE = Path(__file__).parent
OPENED = ("java.lang", "java.util", "java.util.concurrent.atomic", "java.time")  # Flink copies rows by reflection
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
GENERATED = "generated"


def main() -> None:
    """With `--new` only statements that are not recorded yet run on Flink. Names of constructs choose those.

    `--seed 1 --cases 100` records generated cases instead.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("constructs", nargs="*", default=CONSTRUCTS)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--cases", type=int, default=100)
    said = parser.parse_args()
    if said.seed is not None:
        asked = cases(said.seed, said.cases)
        write(GENERATED, [{**one, **result} for one, result in zip(asked, run_flink(asked), strict=True)])
        return
    known: dict[str, dict[str, Any]] = {}
    if said.new:
        known = {record["statement"]: record for construct in said.constructs for record in recorded(construct)}
    new = [statement for construct in said.constructs for statement in written(construct) if statement not in known]
    results = run_flink([case(statement) for statement in new])
    for construct in said.constructs:
        for statement in written(construct):
            if statement not in known:
                known[statement] = {"statement": statement, **next(results)}
        write(construct, [known[statement] for statement in written(construct)])


def recorded(name: str) -> list[dict[str, Any]]:
    """What was recorded under a name."""
    path = HERE / "recorded" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(name: str, records: list[dict[str, Any]]) -> None:
    """Record under a name."""
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (HERE / "recorded" / f"{name}.jsonl").write_text(lines)


def run_flink(asked: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What each case gives on Flink, in one JVM."""
    jars = os.environ.get("FLINK_JARS")
    if not jars:
        raise SystemExit(f"the recorder needs Flink's jars; FLINK_JARS is not set; see {HERE.parent / 'README.md'}")
    with tempfile.TemporaryDirectory() as folder:
        sources = [str(HERE / name) for name in ("FlinkSql.java", "FlinkLookup.java")]
        subprocess.run(["javac", "-nowarn", "-d", folder, "-cp", f"{jars}/*", *sources], check=True)
        services = Path(folder) / "META-INF" / "services"
        services.mkdir(parents=True)
        (services / "org.apache.flink.table.factories.Factory").write_text("FlinkLookup\n")
        given = Path(folder) / "cases.jsonl"
        given.write_text("".join(json.dumps(one) + "\n" for one in asked))
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        command = ["java", *QUICK_START, *opened, "-cp", f"{folder}:{jars}/*", "FlinkSql"]
        with (
            given.open() as cases_in,
            subprocess.Popen(
                command, stdin=cases_in, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
            ) as flink,
        ):
            assert flink.stdout is not None
            for line in flink.stdout:
                yield json.loads(line)


if __name__ == "__main__":
    main()
