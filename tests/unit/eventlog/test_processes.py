"""Several processes at once, and processes that are killed."""

from __future__ import annotations

import random
import signal
import threading

import numpy as np
import pyarrow as pa
import pytest

WRITER = """
import sys, pyarrow as pa
from headwater.eventlog import EventLog
root, me, appends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
topic = EventLog(root).topic("shared")
at = 0
for i in range(appends):
    count = 1 + (i * 7 + me) % 50
    topic.append(pa.table({"writer": pa.array([me] * count), "n": pa.array(range(at, at + count))}))
    at += count
print(at)
"""

ENDLESS = """
import sys, pyarrow as pa
from headwater.eventlog import EventLog, conform, topic as topics
conform.FRAME_BYTES, topics.EAGER_BYTES = 16 << 10, 0  # encoded frame by frame while written: mostly torn
topic = EventLog(sys.argv[1]).topic("shared")
big = pa.table({"writer": pa.array([0] * 200_000), "n": pa.array(range(200_000))})
while True:
    begin, end = topic.append(big)
    print(end, flush=True)
"""

READER = """
import sys
from headwater.eventlog import EventLog
topic = EventLog(sys.argv[1]).topic("shared")
total, at, last = int(sys.argv[2]), 0, {}
while at < total:
    end = topic.end_offsets()[0]
    assert end >= at, (end, at)
    for batch in topic.read(0, at, end):
        for writer, n in zip(batch["writer"].to_pylist(), batch["n"].to_pylist()):
            assert n == last.get(writer, -1) + 1, (writer, n, last)
            last[writer] = n
        at += batch.num_rows
    assert at == end
print(at)
"""

ROWS = 200_000
SCHEMA = pa.schema([("writer", pa.int64()), ("n", pa.int64())])


def appended_rows(me: int, appends: int) -> int:
    return sum(1 + (i * 7 + me) % 50 for i in range(appends))


def test_four_writers_and_two_readers_lose_and_double_nothing(log, program):
    topic = log.create_topic("shared", SCHEMA, segment_bytes=100_000)
    appends = 250
    total = sum(appended_rows(me, appends) for me in range(4))
    readers = [program(READER, log.path, total) for _ in range(2)]
    writers = [program(WRITER, log.path, me, appends) for me in range(4)]
    counts = [int(process.communicate()[0]) for process in writers]
    assert counts == [appended_rows(me, appends) for me in range(4)]
    for process in readers:
        assert int(process.communicate()[0]) == total
        assert process.returncode == 0
    table = pa.Table.from_batches(topic.read(0, 0))
    assert table.num_rows == total
    for me in range(4):
        mine = table.filter(pa.compute.equal(table["writer"], me))
        assert mine["n"].to_pylist() == list(range(counts[me]))
    assert len(list((topic.path / "partition-0").glob("*.segment"))) > 3


def test_threads_of_one_topic_take_turns(log):
    topic = log.create_topic("shared", SCHEMA, segment_bytes=5_000)

    def write(me: int) -> None:
        for n in range(60):
            topic.append(pa.table({"writer": [me], "n": [n]}))

    threads = [threading.Thread(target=write, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = pa.Table.from_batches(topic.read(0, 0)).to_pylist()
    for me in range(4):
        assert [row["n"] for row in read if row["writer"] == me] == list(range(60))


@pytest.mark.parametrize("seed", range(6))
def test_killed_writer_leaves_whole_appends_only(log, program, seed):
    """Each append is some 200 frames of 16 KiB; SIGKILL comes at a random moment, for odd seeds inside an append."""
    topic = log.create_topic("shared", SCHEMA, segment_bytes=16 << 20)
    folder = topic.path / "partition-0"
    follower = log.topic("shared")
    chance = random.Random(seed)
    process = program(ENDLESS, log.path)
    acknowledged = int(process.stdout.readline())
    append_bytes = max(folder.glob("*.segment")).stat().st_size // (acknowledged // ROWS)
    for _ in range(chance.randrange(4)):
        acknowledged = int(process.stdout.readline())
    for _ in range(chance.randrange(300)):  # a moment, without a sleep
        assert follower.end_offsets()[0] % ROWS == 0
    while seed % 2 and max(folder.glob("*.segment")).stat().st_size % append_bytes == 0:
        pass
    process.send_signal(signal.SIGKILL)
    for line in process.communicate()[0].split():
        acknowledged = int(line)
    end = follower.end_offsets()[0]
    assert end % ROWS == 0
    assert acknowledged <= end <= acknowledged + ROWS
    assert log.topic("shared").end_offsets() == {0: end}
    assert topic.append(pa.table({"writer": [1], "n": [7]})) == (end, end + 1)
    assert sum(path.stat().st_size for path in folder.glob("*.segment")) < (end // ROWS) * append_bytes + 1000
    numbers = np.concatenate([batch["n"].to_numpy() for batch in follower.read(0, 0)])
    assert np.array_equal(numbers, np.append(np.tile(np.arange(ROWS), end // ROWS), 7))


def test_creating_a_topic_at_once_from_several_processes(log, program):
    code = """
import sys, pyarrow as pa
from headwater.eventlog import EventLog
topic = EventLog(sys.argv[1]).create_topic("shared", pa.schema([("n", pa.int64())]), 3, exist_ok=True)
topic.append(pa.table({"n": [1]}), 2)
"""
    for process in [program(code, log.path) for _ in range(3)]:
        process.communicate()
        assert process.returncode == 0
    assert log.topic("shared").end_offsets() == {0: 0, 1: 0, 2: 3}
