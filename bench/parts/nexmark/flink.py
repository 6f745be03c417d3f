"""Flink SQL beside us: one JVM with a cluster of its own, which is asked query by query."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from parts.nexmark.files import EventFiles
from parts.nexmark.texts import TABLES

sys.path.insert(0, str(Path(__file__).parents[3]))  # the jars are fetched as the tests fetch theirs

from tests.parts.maven import jars

HERE = Path(__file__).parent
VERSION = "2.2.1"
JARS = tuple(
    f"org.apache.flink:{name}:{VERSION}"
    for name in (
        "flink-clients",
        "flink-table-planner_2.12",
        "flink-connector-files",
        "flink-json",
        "flink-statebackend-rocksdb",
    )
)
CLUSTER = {
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
}
JOB = {
    "parallelism.default": "2",
    "restart-strategy.type": "disable",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled": "false",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
"""What Nexmark's project sets for Flink, but for the parallelism and how often there are checkpoints."""


class Flink:
    """Runs queries over files with Flink SQL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        path = jars(f"flink-{VERSION}-nexmark", *JARS)
        self._classes = tempfile.TemporaryDirectory()
        services = Path(self._classes.name) / "META-INF/services"
        services.mkdir(parents=True)
        (services / "org.apache.flink.table.factories.Factory").write_text("FlinkNexmark$SideInput\n")
        source = str(HERE / "FlinkNexmark.java")
        subprocess.run(["javac", "-nowarn", "-d", self._classes.name, "-cp", f"{path}/*", source], check=True)
        self._log = (self._folder / "flink.log").open("w")
        opened = ["--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
        self._process = subprocess.Popen(
            ["java", "-Xms2g", "-Xmx4g", *opened, "-cp", f"{self._classes.name}:{path}/*", "FlinkNexmark"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._say({**CLUSTER, "io.tmp.dirs": str(self._folder)})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe(self._process.stdin).close()
        if kind is not None:
            self._process.kill()
        self._process.wait()
        self._log.close()
        self._classes.cleanup()

    def rows(self, text: str, files: EventFiles) -> dict[tuple[str | None, ...], int]:
        """The table that a query comes to: each row, as texts, and how often it is there."""
        asked = self._ask(text, files, 1_000, collect=True)
        return {tuple(values): count for values, count in asked["rows"]}

    def seconds(self, text: str, files: EventFiles, checkpoint_ms: int) -> float:
        """How long a query runs, from the start of the job to its end."""
        return float(self._ask(text, files, checkpoint_ms, collect=False)["ms"]) / 1000

    def _ask(self, text: str, files: EventFiles, checkpoint_ms: int, *, collect: bool) -> dict[str, Any]:
        connector = f"'connector' = 'filesystem', 'path' = 'file://{files.theirs}', 'format' = 'json'"
        side_input = f"'connector' = 'side-input', 'path' = '{files.side_input}/side_input.json'"
        tables = TABLES.replace("{connector}", connector).replace("{side_input}", side_input).split(";")
        settings = {
            **JOB,
            "execution.checkpointing.interval": f"{checkpoint_ms} ms",
            "execution.checkpointing.dir": f"file://{self._folder}/checkpoints",
        }
        asked = {"text": text, "tables": [one for one in tables if one.strip()], "settings": settings}
        self._say({**asked, "collect": collect})
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"Flink has stopped:\n{(self._folder / 'flink.log').read_text()[-3000:]}")
        return dict(json.loads(line))

    def _say(self, what: dict[str, Any]) -> None:
        pipe = self._pipe(self._process.stdin)
        pipe.write(json.dumps(what) + "\n")
        pipe.flush()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe
