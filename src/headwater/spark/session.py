"""Spark sessions: a tuned local one when the user gives none, and the settings a job needs on any."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from pyspark import SparkConf
from pyspark.sql import SparkSession

from headwater.scratch import Scratch
from headwater.spark.java import find_java
from headwater.spark.jvm import spark_context
from headwater.spark.standard_error import LOG_CONFIG, sorted_for_children

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOCAL_DIR = "spark.local.dir"
_ROCKSDB_DIR = "ROCKSDB_SHAREDLIB_DIR"
"""Where RocksDB puts its library, 70 MB for each JVM."""
_PACKAGE = "org.apache.spark.sql.execution.streaming"

JOB_CONFIG = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": f"{_PACKAGE}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Payloads are rows of up to 4 MiB: a batch of the default 10,000 of them would not fit in memory.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    # Every epoch has the same plan and every subtask its own partition; re-planning by size would merge them.
    "spark.sql.adaptive.enabled": "false",
}
"""Set on the job's own session, so that the user's keeps its values."""

RETAINED_BATCHES = "spark.sql.streaming.minBatchesToRetain"
"""The setting of how many checkpoints Spark keeps, in its logs and in its state store."""

_LARGE_BLOCK_BYTES = 4 << 20
"""Blocks that a worker gives back as soon as they are free. Columns of state grow by moving, and glibc would come to keep
what they leave behind, which is a fifth of what they take. What batches need is smaller."""
_SPARE_BYTES = 16 << 20
"""What a worker keeps of smaller blocks that are free, so that the next piece of state is not put into memory anew."""

LOCAL_CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # A TCP connection to a worker waits for delayed acknowledgements: 50 ms more for each epoch.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""For the session made when the user gives none."""

LOCAL_FILES_CONFIG = {
    # On a local file system the default runs `chmod` for each file it writes: about 100 ms more for each commit.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_PACKAGE}.checkpointing.FileSystemBasedCheckpointFileManager",
}
"""For checkpoints on a local file system, whose renames are atomic."""


def local_session(parallelism: int, config: dict[str, str]) -> SparkSession:
    """The process's local session, made if there is none. A task may fail twice before the job does.

    What its JVM logs is for `headwater.spark`; one that the user has made is left as it is. What it keeps on the local disk,
    RocksDB's library and the working copy of its state first of all, is removed by the next process if this one is killed.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ["JAVA_HOME"] = str(find_java())
    scratch = Scratch("spark").path
    os.environ.setdefault("PYSPARK_PYTHON", str(_worker_launcher(scratch)))
    os.environ.setdefault(_ROCKSDB_DIR, str(scratch))
    conf = SparkConf().setAppName("headwater").setMaster(f"local[{parallelism},3]")
    logging = f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()}"
    options = " ".join([logging, *filter(None, [config.get(_JAVA_OPTIONS)])])
    local = {**LOCAL_CONFIG, _LOCAL_DIR: str(scratch)}
    conf.setAll(list({**local, **config, _JAVA_OPTIONS: options}.items()))
    with sorted_for_children():
        spark_context(conf)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def job_session(session: SparkSession, parallelism: int, config: dict[str, str]) -> SparkSession:
    """A session of the job's own next to the given one: same Spark, own settings."""
    own = session.newSession()
    settings = {**JOB_CONFIG, **LOCAL_FILES_CONFIG, **config, "spark.sql.shuffle.partitions": str(parallelism)}
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            own.conf.set(name, value)
    return own


def is_gone(session: SparkSession) -> bool:
    """Whether there is no JVM behind the session any more. A setting is asked of it anew each time, its version is not."""
    try:
        session.conf.get("spark.app.id", "")
        return False
    except Exception:  # a connection that is refused or broken, as it happens
        return True


def is_shut_down(session: SparkSession) -> bool:
    """Whether Spark has ended or is about to: a JVM that was told to end answers for a while."""
    try:
        return not session.sparkContext.defaultParallelism
    except Exception:  # Spark's own when it ends, or a connection that is refused or broken
        return True


def location(folder: Path) -> str:
    """A local folder as Spark wants it named: it takes every character as it is and would not know an escaped one."""
    return f"file://{folder}"


def _worker_launcher(folder: Path) -> Path:
    """A script that starts this Python for a worker, with the driver's import path.

    Spark puts its `pyspark.zip` in front of a worker's import path, and Python compiles what it imports from a zip anew in
    each process: two seconds for each of the half dozen processes that a job starts with. The installed package has its
    bytecode; and a worker can so import whatever the driver can.
    """
    launcher = folder / "python"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    memory = [f"MALLOC_MMAP_THRESHOLD_:={_LARGE_BLOCK_BYTES}", f"MALLOC_TRIM_THRESHOLD_:={_SPARE_BYTES}"]
    lines = [
        "#!/bin/sh",
        *[f': "${{{setting}}}"' for setting in memory],
        "export MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_",
        f'PYTHONPATH={shlex.quote(path)} exec {shlex.quote(sys.executable)} "$@"',
    ]
    launcher.write_text("\n".join([*lines, ""]))
    launcher.chmod(0o755)
    return launcher
