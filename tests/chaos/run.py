"""`make chaos N=20`: a job under random kills and faults, and its output beside the truth.

The last line printed is JSON with the figures. A run that fails keeps its folder, and says where, with the seed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from tests.chaos.acts import Stage
from tests.chaos.disk import Disk
from tests.chaos.events import Events
from tests.chaos.feed import Feed
from tests.chaos.plan import DRIVER_KILLS, KILLS, Act, Plan
from tests.chaos.supervised import ChaosFailed, SupervisedDriver
from tests.chaos.truth import differences

_DISK_MB = 512
"""An epoch leaves up to ten small files, each of a page or two, and some hundred versions of state stay."""
_DRAIN_S = 900
"""For the last driver, which reads what is left to its end."""


@dataclass(frozen=True)
class Figures:
    """What a run was, and what came of it."""

    seed: int
    kills: dict[str, int]
    faults: dict[str, int]
    refused: int
    """Starts refused because of a damaged file."""
    driver_starts: int
    restarts: int
    """Starts again inside a driver, by its restart strategy."""
    epochs: int
    rows_in: int
    rows_out: int
    lost: int
    doubled: int
    seconds: float


def chaos(folder: Path, kills: int, seed: int, tell: Callable[[str], None], moved: Callable[[int], None]) -> Figures:
    """Run it all in a folder; ChaosFailed when a row is lost or doubled, or something does not come in time."""
    began = time.monotonic()
    disk = Disk(folder / "disk", _DISK_MB)
    plan = Plan.of(kills, seed)
    if not disk.can_be_filled:
        tell(f"the disk cannot be filled, since no tmpfs can be mounted ({disk.why_not}): this fault is left out")
        plan = plan.without(Act.DISK_FULL)
    events = Events(seed)
    job = SupervisedDriver(folder, disk.path, tell)
    feed = Feed(folder, disk.path, events)
    try:
        feed.start()
        stage = Stage(job, disk, random.Random(seed + 1), tell)
        _torment(job, stage, plan, tell, moved)
        feed.end()
        tell(f"the input ends after {len(events.orders) + len(events.payments):,} rows; the last driver reads it all")
        job.bounded = True
        job.start()
        job.wait_for("end of the job", lambda: job.finished, limit_s=_DRAIN_S)
        found = differences(disk.path, events)
        done = Counter(plan.acts)
        figures = Figures(
            seed=seed,
            kills={act.value: done[act] for act in KILLS if done[act]},
            faults={act.value: done[act] for act in Act if act not in KILLS and done[act]},
            refused=stage.refused,
            driver_starts=job.starts,
            restarts=job.restarts.total(),
            epochs=job.published + 1,
            rows_in=len(events.orders) + len(events.payments),
            rows_out=sum(one.rows for one in found.values()),
            lost=sum(one.lost.total() for one in found.values()),
            doubled=sum(one.doubled.total() for one in found.values()),
            seconds=round(time.monotonic() - began, 1),
        )
        tell("rows of the outputs: " + ", ".join(f"{name} {one.rows:,}" for name, one in found.items()))
        tell(f"{disk.used_mb():.0f} MB on disk; why drivers started the job again: {dict(job.restarts)}")
        wrong = {name: one for name, one in found.items() if not one.is_none}
        for name, one in wrong.items():
            tell(f"{name}: lost {list(one.lost.items())[:5]}, doubled {list(one.doubled.items())[:5]}")
        if wrong:
            raise ChaosFailed(f"the output is not the truth: {json.dumps(asdict(figures))}")
        return figures
    except BaseException as error:
        job.kill_all()
        if isinstance(error, Exception):
            disk.keep(folder / "kept")
        raise
    finally:
        job.kill_all()
        feed.end()
        disk.remove()


def _torment(
    job: SupervisedDriver, stage: Stage, plan: Plan, tell: Callable[[str], None], moved: Callable[[int], None]
) -> None:
    job.start()
    job.wait_for("first epoch", lambda: job.published >= 0)
    kills = 0
    for number, act in enumerate(plan.acts, 1):
        stage.do(act)
        kills += act in KILLS
        tell(f"{number:4d} of {len(plan.acts)}: {act.value}, after epoch {job.published} was published")
        moved(kills)
        is_down = act in DRIVER_KILLS or act is Act.DAMAGED
        next_act = plan.acts[number] if number < len(plan.acts) else None
        if is_down and next_act not in (Act.DAMAGED, None):
            job.start()


def main() -> int:
    options = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    options.add_argument("--kills", type=int, default=20, metavar="N")
    options.add_argument("--seed", type=int, default=None)
    args = options.parse_args()
    if args.kills < 1:
        options.error("--kills must be at least 1")
    for terminated in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(terminated, lambda number, _: sys.exit(128 + number))
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    folder = Path(tempfile.mkdtemp(prefix="hw-chaos-"))  # short: sockets of Spark's workers lie in it
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total} kills"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task(f"chaos, seed {seed}", total=args.kills)
        console.print(f"seed {seed}, {args.kills} kills, in {folder}")
        try:
            figures = chaos(
                folder,
                args.kills,
                seed,
                lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True),
                lambda kills: progress.update(bar, completed=kills),
            )
        except ChaosFailed as failure:
            console.print(f"FAILED with seed {seed}: {failure}\nEverything is kept in {folder}", markup=False)
            return 1
        except BaseException:
            console.print(f"ended early; seed {seed}, everything is kept in {folder}", markup=False)
            raise
    shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(asdict(figures)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
