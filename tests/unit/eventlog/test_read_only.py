"""A log that this user may only read is read, and says so when it is written; one that may not be read says that."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.eventlog import EventLog
from headwater.eventlog.errors import LogUnreadable, LogWriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def log() -> Iterator[EventLog]:
    """Two segments; not below pytest's folder, which is for its owner alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    log = EventLog(folder / "log")
    topic = log.create_topic("t", SCHEMA, segment_bytes=200)
    for first in (0, 10):
        topic.append(pa.table({"n": range(first, first + 10)}))
    topic.flush()
    yield log
    for path in folder.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def a_user_without_rights() -> Iterator[None]:
    """Somebody whom the modes of files concern: the administrator is not."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def set_modes(log: EventLog, folder: int, file: int) -> None:
    for path in [*log.path.rglob("*"), log.path]:
        path.chmod(folder if path.is_dir() else file)


def test_log_in_a_read_only_folder_is_read(log, rows):
    set_modes(log, 0o555, 0o444)
    with a_user_without_rights():
        assert log.topics() == ["t"]
        topic = log.create_topic("t", SCHEMA, exist_ok=True)
        assert (topic.start_offsets(), topic.end_offsets()) == ({0: 0}, {0: 20})
        assert rows(topic) == list(range(20))


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.topic("t").append(pa.table({"n": [1]})),
        lambda log: log.topic("t").append_keyed(pa.table({"n": [1]}), by="n"),
        lambda log: log.topic("t").drop_from(0, 10),
        lambda log: log.topic("t").apply_retention(),
        lambda log: log.topic("t").rebuild_indexes(),
        lambda log: log.create_topic("new", SCHEMA),
        lambda log: EventLog(log.path / "other").create_topic("new", SCHEMA),
    ],
)
def test_change_of_a_log_that_is_for_reading_says_so(log, rows, change):
    set_modes(log, 0o555, 0o444)
    with a_user_without_rights():
        with pytest.raises(LogWriteFailed, match=r"is read-only .* owner or rights, or only read the topic") as caught:
            change(log)
        assert str(log.path) in str(caught.value)
        assert rows(log.topic("t")) == list(range(20))


@pytest.mark.parametrize(("folder", "file"), [(0o555, 0o666), (0o777, 0o444)])
def test_append_with_half_of_the_rights_is_refused(log, rows, folder, file):
    """The newest segment has no room left: a new one must be made, which the folder forbids, or the lock's file."""
    set_modes(log, folder, file)
    with a_user_without_rights():
        with pytest.raises(LogWriteFailed, match="is read-only"):
            log.topic("t").append(pa.table({"n": range(20, 40)}))
        assert rows(log.topic("t")) == list(range(20))


@pytest.mark.parametrize("what", ["t", "t/topic.json", "t/partition-0", "t/partition-0/00000000000000000000.segment"])
def test_log_that_may_not_be_read_says_so(log, rows, what):
    (log.path / what).chmod(0)
    with a_user_without_rights(), pytest.raises(LogUnreadable, match=r"topic 't' .* may read; .*Permission denied"):
        rows(log.topic("t"))


def test_index_that_may_not_be_read_is_done_without(log, rows):
    for path in log.path.rglob("*.index"):
        path.chmod(0)
    with a_user_without_rights():
        assert rows(log.topic("t")) == list(range(20))
