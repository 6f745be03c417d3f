"""`make chaos-ends N=50`: Kafka to Kafka and PostgreSQL, under random kills of the job and restarts of both systems.

The last line printed is JSON with the figures. A run that fails says with which seed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Producer
from tests.chaos.acts import Stage
from tests.chaos.disk import Disk
from tests.chaos.ends.events import Events
from tests.chaos.ends.found import wrong
from tests.chaos.plan import DRIVER_KILLS, KILLS, Act
from tests.chaos.supervised import ChaosFailed, SupervisedDriver
from tests.parts.kafka import KafkaBroker
from tests.parts.postgres import PostgresServer

_PARTITIONS = 4
_DRAIN_S = 1_800
"""For the last driver, which reads what is left to its end."""
_DOWN_S = 3.0
"""How long a system is away when it is restarted."""


@dataclass(frozen=True)
class Figures:
    """What a run was, and what came of it."""

    seed: int
    events: int
    kills: dict[str, int]
    broker_restarts: int
    server_restarts: int
    driver_starts: int
    restarts: int
    epochs: int
    seconds: float


@dataclass(frozen=True)
class Torment:
    """How much is done to the job and to the systems around it."""

    events: Events
    rows_per_epoch: int
    kills: int
    broker_restarts: int
    server_restarts: int


def chaos(folder: Path, torment: Torment, tell: Callable[[str], None]) -> Figures:
    """Run it all in a folder; ChaosFailed when a row is lost, doubled or out of order, or something does not come."""
    began = time.monotonic()
    broker, server = KafkaBroker(), PostgresServer()
    disk = Disk(folder / "disk", 2_048)
    job = SupervisedDriver(folder, disk.path, tell, "tests.chaos.ends.job")
    chance = random.Random(torment.events.seed)
    try:
        broker.start()
        server.start()
        _prepare(folder, broker, server, torment)
        tell(f"{torment.events.count:,} events are in the topic")
        acts = _acts(torment, chance, broker, server)
        stage = Stage(job, disk, chance, tell)
        job.start()
        job.wait_for("first epoch", lambda: job.published >= 0)
        for number, act in enumerate(acts, 1):
            if isinstance(act, Act):
                stage.do(act)
            else:
                _restart(act)
            name = act.value if isinstance(act, Act) else f"{type(act).__name__} restarted"
            tell(f"{number:4d} of {len(acts)}: {name}, after epoch {job.published} was published")
            if act in DRIVER_KILLS and number < len(acts):
                job.start()
        job.bounded = True
        job.start()
        job.wait_for("end of the job", lambda: job.finished, limit_s=_DRAIN_S)
        found = wrong(broker.servers, server.conninfo, torment.events)
        if found:
            raise ChaosFailed(f"seed {torment.events.seed}: the output is not the truth: {found}")
        return Figures(
            seed=torment.events.seed,
            events=torment.events.count,
            kills={act.value: n for act, n in Counter(act for act in acts if isinstance(act, Act)).items()},
            broker_restarts=torment.broker_restarts,
            server_restarts=torment.server_restarts,
            driver_starts=job.starts,
            restarts=job.restarts.total(),
            epochs=job.published + 1,
            seconds=round(time.monotonic() - began, 1),
        )
    finally:
        job.kill_all()
        disk.remove()
        broker.remove()
        server.remove()


def _prepare(folder: Path, broker: KafkaBroker, server: PostgresServer, torment: Torment) -> None:
    ends = {"kafka": broker.servers, "postgres": server.conninfo, "rows_per_epoch": torment.rows_per_epoch}
    (folder / "ends.json").write_text(json.dumps(ends))
    for topic in ("orders", "totals", "windows"):
        broker.create_topic(topic, _PARTITIONS)
    server.run(
        'CREATE TABLE totals ("user" text PRIMARY KEY, n bigint, total bigint)',
        'CREATE TABLE windows ("user" text, window_start timestamptz, window_end timestamptz, n bigint, total bigint)',
    )
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number, event in enumerate(torment.events):
        producer.produce("orders", event.value(), event.user)
        if number % 10_000 == 0:
            producer.poll(0)
            while len(producer) > 400_000:
                producer.poll(0.1)
    if producer.flush(120):
        raise ChaosFailed("the events did not get into the topic")


def _acts(
    torment: Torment, chance: random.Random, broker: KafkaBroker, server: PostgresServer
) -> list[Act | KafkaBroker | PostgresServer]:
    """In random order, ending with the kill of a driver; the driver after it reads the input to its end."""
    kills = [chance.choice(KILLS) for _ in range(torment.kills - 1)]
    acts: list[Act | KafkaBroker | PostgresServer] = [
        *kills,
        *[broker] * torment.broker_restarts,
        *[server] * torment.server_restarts,
    ]
    chance.shuffle(acts)
    return [*acts, Act.DRIVER]


def _restart(system: KafkaBroker | PostgresServer) -> None:
    system.stop()
    time.sleep(_DOWN_S)
    system.start()


def main() -> int:
    options = argparse.ArgumentParser(prog="make chaos-ends", description=__doc__)
    options.add_argument("--kills", type=int, default=50, metavar="N")
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--rows-per-epoch", type=int, default=5_000)
    options.add_argument("--broker-restarts", type=int, default=2)
    options.add_argument("--server-restarts", type=int, default=2)
    options.add_argument("--seed", type=int, default=None)
    args = options.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    torment = Torment(
        Events(args.events, seed), args.rows_per_epoch, args.kills, args.broker_restarts, args.server_restarts
    )
    folder = Path(tempfile.mkdtemp(prefix="hw-ends-"))
    print(f"seed {seed}, {args.kills} kills, in {folder}", flush=True)
    figures = chaos(folder, torment, lambda text: print(text, flush=True))
    shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(asdict(figures)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
