"""What Spark and its workers write is sorted, however it is cut."""

from __future__ import annotations

import pytest

from headwater.spark.standard_error import Sorter

WRITTEN = (
    b"NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1g\n"
    b"WARNING: Using incubator modules: jdk.incubator.vector\n"
    b"\x1eWARN NativeCodeLoader: no native library\n"
    b"hello\n"
    b"\n"
    b"half a \x1eERROR Executor: failed\n"
    b"\x1e\tat org.apache.spark.Executor\n"
    b"line\n"
    b"Starting Streaming TransformWithStateInPandas Python worker.\n"
    b"\n"
    b"WARNING: mine\n"
    b"Traceback (most recent call last):\n"
    b'  File "/python/pyspark/daemon.py", line 264, in manager\n'
    b"    code = worker(sock, authenticated)\n"
    b"BrokenPipeError: [Errno 32] Broken pipe\n"
    b"Traceback (most recent call last):\n"
    b'  File "/mine.py", line 1, in process\n'
    b"ValueError: mine\n"
    b"no end"
)
OURS = (
    b"hello\n\nhalf a line\nWARNING: mine\n"
    b'Traceback (most recent call last):\n  File "/mine.py", line 1, in process\nValueError: mine\nno end'
)
LOGGED = [
    "NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1g",
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "WARN NativeCodeLoader: no native library",
    "ERROR Executor: failed",
    "\tat org.apache.spark.Executor",
    "Starting Streaming TransformWithStateInPandas Python worker.",
    "Traceback (most recent call last):",
    '  File "/python/pyspark/daemon.py", line 264, in manager',
    "    code = worker(sock, authenticated)",
    "BrokenPipeError: [Errno 32] Broken pipe",
]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_log_and_chatter_are_told_from_what_user_code_writes(size: int) -> None:
    logged: list[str] = []
    passed_on: list[bytes] = []
    sorter = Sorter(logged.append, passed_on.append)
    for at in range(0, len(WRITTEN), size):
        sorter.take(WRITTEN[at : at + size])
    sorter.end()
    assert b"".join(passed_on) == OURS
    assert logged == LOGGED


@pytest.mark.parametrize(
    ("last", "passed_on"),
    [(b"", b""), (b'  File "/mine.py", li', b'Traceback (most recent call last):\n  File "/mine.py", li')],
)
def test_a_traceback_of_which_only_the_first_line_came_is_not_shown(last: bytes, passed_on: bytes) -> None:
    logged: list[str] = []
    shown: list[bytes] = []
    sorter = Sorter(logged.append, shown.append)
    sorter.take(b"Traceback (most recent call last):\n" + last)
    sorter.end()
    assert b"".join(shown) == passed_on
    assert logged == ([] if last else ["Traceback (most recent call last):"])


def test_tracebacks_of_workers_that_end_together_are_not_shown_either() -> None:
    logged: list[str] = []
    shown: list[bytes] = []
    sorter = Sorter(logged.append, shown.append)
    begun = b"Traceback (most recent call last):\n"
    frame, end = (
        b'  File "/python/pyspark/daemon.py", line 264, in manager\n',
        b"BrokenPipeError: [Errno 32] Broken pipe\n",
    )
    for text in (begun, begun, frame, frame, end, end, b"mine\n", begun, frame, begun, end, frame, end, b"mine too\n"):
        sorter.take(text)
    sorter.end()
    assert b"".join(shown) == b"mine\nmine too\n"
    assert len(logged) == 12


def test_the_process_that_plans_epochs_ends_without_a_word() -> None:
    """Spark lets go of it while it waits, and of what it would say of that."""
    logged: list[str] = []
    passed_on: list[bytes] = []
    sorter = Sorter(logged.append, passed_on.append)
    theirs = (
        b"Traceback (most recent call last):\n"
        b'  File "/python/pyspark/sql/streaming/python_streaming_source_runner.py", line 265, in main\n'
        b"    func_id = read_int(infile)\n"
        b"EOFError\n"
        b"\n"
        b"During handling of the above exception, another exception occurred:\n"
        b"\n"
        b"Traceback (most recent call last):\n"
        b'  File "<frozen runpy>", line 198, in _run_module_as_main\n'
        b"BrokenPipeError: [Errno 32] Broken pipe\n"
    )
    mine = b'\nTraceback (most recent call last):\n  File "/mine.py", line 1, in open\nValueError: mine\n'
    sorter.take(theirs + b"mine\n" + mine)
    sorter.end()
    assert b"".join(passed_on) == b"mine\n" + mine
    assert logged == theirs.decode().splitlines()
