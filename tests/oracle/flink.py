"""Cases run on Apache Flink: FlinkOracle.java and what it runs, over the jars in the folder that FLINK_JARS names."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # most of the time is spent in code that runs a few times


def run_flink(cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each case emits on Flink, in one JVM."""
    jars = os.environ.get("FLINK_JARS")
    if not jars:
        raise SystemExit(f"the oracle needs Flink's jars; FLINK_JARS is not set; see {HERE / 'README.md'}")
    with tempfile.TemporaryDirectory() as classes:
        sources = sorted(str(source) for source in HERE.glob("*.java"))
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", f"{jars}/*", *sources], check=True)
        done = subprocess.run(
            ["java", *QUICK_START, "-cp", f"{classes}:{jars}/*", "FlinkOracle"],
            input="".join(json.dumps(case) + "\n" for case in cases),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]
