"""The job that is killed between DataFrames: a streaming one in, which differs each time it is computed, and two outputs.

Run as a program: frames_job.py FOLDER IN NUMBER kills its own process group when a micro-batch is put down and Spark has
not committed it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from crash import kill

import headwater as hw
from headwater.connectors.batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS_PER_FILE = 6, 20
ROWS = FILES * ROWS_PER_FILE


class Count(hw.KeyedProcessFunction):
    """The rows of a key, counted, with what chance has given them."""

    count = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.count.set(self.count.get() + 1)
        yield event.n, event.n % 2 == 0, event.luck, self.count.get()


def write_input(folder: Path) -> None:
    for number in range(FILES):
        rows = pa.table({"n": list(range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE))})
        pq.write_table(rows, folder / f"{number}.parquet")


def put_down(folder: Path) -> dict[int, float]:
    """What chance gave each row when it was put down."""
    found = {}
    for path in sorted((folder / "job" / "sources" / "frame" / "batches").glob("*.json")):
        for name in json.loads(path.read_text())["files"]:
            with pa.memory_map(str(path.with_suffix("") / name)) as source:
                found.update({row["n"]: row["luck"] for row in pa.ipc.open_stream(source).read_all().to_pylist()})
    return found


def published(folder: Path) -> dict[str, list[tuple[int, float, int]]]:
    """What readers find in each output."""
    found = {}
    for name in ("files", "frames"):
        paths = [path for path in (folder / name).rglob("*.parquet") if "_headwater" not in path.parts]
        tables = [pq.ParquetFile(path).read(columns=["n", "luck", "count"]) for path in paths]
        found[name] = sorted(tuple(row.values()) for table in tables for row in table.to_pylist())
    return found


def build(folder: Path, given: Path, spark: SparkSession) -> hw.Environment:
    from pyspark.sql import functions as f

    frame = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(given))
    env = hw.Environment("frames", spark=spark, max_rows_per_epoch=2, job_dir=folder / "job")
    rows = env.from_dataframe(frame.withColumn("luck", f.rand()), name="frame")
    counted = rows.key_by(lambda row: row.n % 5, type="long").process(
        Count(), "n long, even boolean, luck double, count long"
    )
    counted.with_uid("count").sink(
        hw.connectors.files(folder / "files", partition_by=["even"], roll_bytes=2500), name="files"
    )

    def write(frame: DataFrame, epoch: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "frames" / str(epoch)))

    counted.to_dataframe_sink(write, idempotent=True, name="frames")
    return env


def die_when_put_down(number: int, die: Callable[[], NoReturn]) -> Callable[[Batches, int, list[str]], None]:
    """What puts a micro-batch down, and dies after one of them."""
    complete = Batches.complete

    def complete_and_die(batches: Batches, at: int, names: list[str]) -> None:
        complete(batches, at, names)
        if at == number:
            die()

    return complete_and_die


def main() -> None:
    from headwater.spark.session import local_session

    folder, given, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    Batches.complete = die_when_put_down(number, kill)  # type: ignore[method-assign, assignment]
    build(folder, given, local_session(2, {})).run(bounded=True)


if __name__ == "__main__":
    main()
