"""Kafka and PostgreSQL for development: `up` starts both in the background on loopback, `down` stops them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
from tests.parts.kafka import KafkaBroker
from tests.parts.postgres import PostgresServer

FOLDER = Path(__file__).parents[2] / ".services"
_STOP_S = 30


def up() -> None:
    """Start what does not run yet, and say where it is and how to stop it."""
    FOLDER.mkdir(exist_ok=True)
    if not _runs("kafka"):
        broker = KafkaBroker()
        broker.start()
        _note("kafka", broker.pid, broker.folder, broker.servers)
    if not _runs("postgres"):
        server = PostgresServer()
        server.start()
        _note("postgres", server.pid, server.folder, server.conninfo)
    for name in ("kafka", "postgres"):
        print(f"{name:9} {_noted(name)['address']}")
    print("make services-down stops them and removes their data")


def down() -> None:
    """Stop what `up` has started, and remove its data."""
    for file in sorted(FOLDER.glob("*.json")):
        noted = json.loads(file.read_text())
        if _runs(file.stem):
            os.kill(noted["pid"], signal.SIGINT)
            _wait_for_the_end(noted["pid"])
        shutil.rmtree(noted["folder"], ignore_errors=True)
        file.unlink()
        print(f"{file.stem} is stopped")


def _note(name: str, pid: int, folder: Path, address: str) -> None:
    """Remember a process by its number and the time it started, as numbers are given again."""
    facts = {"pid": pid, "started": psutil.Process(pid).create_time(), "folder": str(folder), "address": address}
    (FOLDER / f"{name}.json").write_text(json.dumps(facts, indent=2))


def _noted(name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def _runs(name: str) -> bool:
    file = FOLDER / f"{name}.json"
    if not file.exists():
        return False
    noted = json.loads(file.read_text())
    try:
        return bool(psutil.Process(noted["pid"]).create_time() == noted["started"])
    except psutil.NoSuchProcess:
        return False


def _wait_for_the_end(pid: int) -> None:
    deadline = time.monotonic() + _STOP_S
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    if psutil.pid_exists(pid):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]]()
