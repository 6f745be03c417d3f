"""Where the jars of a Kafka broker cannot be fetched, the tests that need one are left out, and that is said; never on CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
NEEDS_A_BROKER = "tests/connectors/test_kafka_broker.py"


def run_without_maven(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The tests of a file, on a machine with an empty cache and a Maven that reaches nothing."""
    maven = folder / "mvn"
    maven.write_text("#!/bin/sh\necho '[ERROR] Network is unreachable'\nexit 1\n")
    maven.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, NEEDS_A_BROKER]
    environment = {**kept, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), **variables}
    return subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_it_says_which_tests_are_left_out_and_why(tmp_path: Path) -> None:
    done = run_without_maven(tmp_path)
    assert "1 tests need a Kafka broker and are left out: Maven cannot fetch org.apache.kafka:" in done.stdout
    assert "Network is unreachable" in done.stdout
    assert f"\n  {NEEDS_A_BROKER} (1)\n" in done.stdout
    assert "1 deselected" in done.stdout


def test_workers_say_it_once(tmp_path: Path) -> None:
    done = run_without_maven(tmp_path, "-n", "2")
    assert done.stdout.count("1 tests need a Kafka broker and are left out: Maven cannot fetch org.apache.kafka:") == 1


def test_ci_leaves_out_nothing(tmp_path: Path) -> None:
    done = run_without_maven(tmp_path, CI="1")
    assert done.returncode == 1
    assert "MavenUnreachable: Maven cannot fetch org.apache.kafka:" in done.stdout
    assert "deselected" not in done.stdout
