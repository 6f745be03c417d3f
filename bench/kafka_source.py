"""Records out of Kafka: Headwater reads, keys and counts them; Spark's own Kafka source reads them and does nothing.

Both read the same topic of the same broker in epochs of the same size, in the same run, and take the key, the time and the
value of each record. Headwater's side keys the rows, keeps a count of each key, and writes the new counts to files.
Spark's side writes nowhere. The first two epochs of each side warm it up and are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from parts.timing import EpochTimes, print_result, spark_rate

import headwater as hw

sys.path.insert(0, str(Path(__file__).parents[1]))  # the broker and the jars are those of the tests

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.parts.kafka import KafkaBroker
from tests.parts.maven import jars

from headwater.scratch import Scratch
from headwater.spark.session import local_session

TOPIC = "events"
FIRST_MS, RECORDS_PER_MS = 1_700_000_000_000, 50
SPARK_CONNECTOR = "4.2.0"
"""Of Spark's Kafka source the newest that is published; it runs on Spark 4.3."""
SPARK_CONNECTOR_JARS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_CONNECTOR}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",  # not for each version of the source there is one
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""What it adds to a Spark that has all the rest."""


def fill(broker: KafkaBroker, records: int, keys: int, partitions: int) -> None:
    """Records of about 100 bytes, whose keys take turns so that each partition has as many."""
    broker.create_topic(TOPIC, partitions, retention_ms=-1)
    producer = Producer(
        {
            "bootstrap.servers": broker.servers,
            "linger.ms": 50,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    filler = "x" * 60
    for n in range(records):
        key = n * 7919 % keys
        value = f'{{"n": {n}, "user": {key}, "text": "{filler}"}}'
        at_ms = FIRST_MS + n // RECORDS_PER_MS
        producer.produce(TOPIC, value, str(key), partition=n % partitions, timestamp=at_ms)
        if n % 100_000 == 0:
            producer.poll(0.2)
    if producer.flush(120):
        raise RuntimeError("the broker does not take the records")


def headwater_rate(broker: KafkaBroker, folder: Path, rows_per_epoch: int) -> float:
    """Rows per second of Headwater."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch)
    source = hw.connectors.kafka(TOPIC, broker.servers, format="raw", metadata={"k": "key", "at": "timestamp"})
    rows = env.source(source, "k string, at timestamp, value string", hw.Watermarks.bounded("at", "1 s"))
    rows.key_by("k").agg(n=hw.count()).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return times.rate(job.status().steps["source"]["rows_in"], rows_per_epoch)


def peer_rate(spark: SparkSession, broker: KafkaBroker, folder: Path, rows_per_epoch: int) -> float:
    """Rows per second of Spark."""
    options = {
        "kafka.bootstrap.servers": broker.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(rows_per_epoch),
    }
    rows = spark.newSession().readStream.format("kafka").options(**options).load()
    texts = rows.selectExpr("cast(key as string) k", "timestamp", "cast(value as string) value")
    writer = texts.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return spark_rate(query)


def main() -> None:
    """Measure both sides and print the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=2_000_000)
    options.add_argument("--rows-per-epoch", type=int, default=250_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--partitions", type=int, default=4)
    args = options.parse_args()
    folder = Scratch("bench-kafka").path
    connector = jars(f"spark-kafka-{SPARK_CONNECTOR}", *SPARK_CONNECTOR_JARS, alone=True)
    broker = KafkaBroker()
    try:
        broker.start()
        fill(broker, args.records, args.keys, args.partitions)
        spark = local_session(2, {"spark.jars": ",".join(sorted(map(str, connector.glob("*.jar"))))})
        print("load average", os.getloadavg())
        ours = headwater_rate(broker, folder / "headwater", args.rows_per_epoch)
        theirs = peer_rate(spark, broker, folder / "spark", args.rows_per_epoch)
        print("load average", os.getloadavg())
        print_result("kafka_source", "spark_kafka_noop", ours, theirs)
    finally:
        broker.remove()


if __name__ == "__main__":
    main()
