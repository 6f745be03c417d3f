"""Event log appends against writing the same bytes to a plain file.

Both sides serialise the same 64k-row batches to Arrow IPC messages in the measured time, write them, and fsync at the
end. A third figure, `plain_file_preserialised`, gives the plain file its bytes for free. Rounds alternate to share the
machine's noise; the median round of each side counts.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from headwater.eventlog import EventLog

ROWS = 65_536
BATCHES = 200  # x 1.5 MiB = 300 MiB a round: several segments, more than any cache
ROUNDS = 7


def make_batches() -> list[pa.RecordBatch]:
    """Build the batches of one round; a few distinct ones, repeated."""
    random = np.random.default_rng(7)
    distinct = [
        pa.record_batch(
            {
                "user": random.integers(0, 100_000, ROWS),
                "ts": pa.array(np.arange(i * ROWS, (i + 1) * ROWS) * 1000, pa.timestamp("us")),
                "amount": random.random(ROWS),
            }
        )
        for i in range(8)
    ]
    return [distinct[i % len(distinct)] for i in range(BATCHES)]


def log_seconds(folder: Path, batches: list[pa.RecordBatch]) -> float:
    """Append all batches to a new topic and flush."""
    topic = EventLog(folder).create_topic("bench", batches[0].schema)
    begin = time.perf_counter()
    for batch in batches:
        topic.append(batch)
    topic.flush()
    return time.perf_counter() - begin


def plain_seconds(folder: Path, batches: list[pa.RecordBatch], messages: list[pa.Buffer] | None) -> float:
    """Write the same messages to one file and fsync it."""
    begin = time.perf_counter()
    with (folder / "plain").open("wb", buffering=0) as file:
        if messages is None:
            for batch in batches:
                file.write(batch.serialize())
        else:
            for message in messages:
                file.write(message)
        os.fsync(file.fileno())
    return time.perf_counter() - begin


def main() -> None:
    """Run the rounds and print the figures, the last line as JSON."""
    batches = make_batches()
    by_id = {id(batch): batch.serialize() for batch in batches}
    messages = [by_id[id(batch)] for batch in batches]
    megabytes = sum(message.size for message in messages) / 1e6
    rates: dict[str, list[float]] = {"headwater": [], "plain_file": [], "plain_file_preserialised": []}
    for number in range(ROUNDS):
        sides = {
            "headwater": lambda folder: log_seconds(folder, batches),
            "plain_file": lambda folder: plain_seconds(folder, batches, None),
            "plain_file_preserialised": lambda folder: plain_seconds(folder, batches, messages),
        }
        for name in sorted(sides, reverse=bool(number % 2)):
            with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
                rates[name].append(megabytes / sides[name](Path(folder)))
        print(f"round {number}: " + ", ".join(f"{name} {rate[-1]:.0f} MB/s" for name, rate in rates.items()))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    print(f"plain file without serialising: {middle['plain_file_preserialised']:.0f} MB/s, ", end="")
    print(f"ratio to it {middle['headwater'] / middle['plain_file_preserialised']:.2f}")
    result = {
        "bench": "log_append",
        "headwater": round(middle["headwater"], 1),
        "plain_file": round(middle["plain_file"], 1),
        "ratio": round(middle["headwater"] / middle["plain_file"], 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
