"""`python -m headwater.demo`: a job with late data and a rule that changes is killed twice, and proof that all is exact."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from headwater.demo import proof
from headwater.demo.check import compare_clicks, compare_sales
from headwater.demo.dashboard import dashboard
from headwater.demo.events import (
    FIRST_LIMIT_CENTS,
    LATER_LIMIT_CENTS,
    PARTITIONS,
    Truth,
    append_order,
    change_limit,
    generate,
    truth_of,
    write_log,
)
from headwater.demo.limits import compare_limits, read_large
from headwater.demo.minutes import compare_minutes, read_minutes
from headwater.demo.process import JobProcess, Standing, log_file, log_tail, standing
from headwater.demo.proof import money
from headwater.demo.screen import Screen

_EPOCHS = 20
"""Enough that each run has some to be killed in; an epoch takes about half a second, whatever it holds."""
_POLL_S = 0.05
"""Much less than an epoch takes, so that a kill hits the one that was seen; looking costs about a millisecond."""
_NO_DASHBOARD = "pip install 'headwater[ui]' shows the job in a browser"


class DemoFailed(Exception):
    """The job did not do what the demo is there to show."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every total is exact."""
    args = _arguments(given)
    for terminated in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(terminated, lambda number, _: sys.exit(128 + number))
    folder = args.folder or Path(tempfile.mkdtemp(prefix="headwater-demo-"))
    keep = args.keep or args.folder is not None
    with Screen(args.events, args.kills) as screen:
        screen.say(
            "a job is started, killed and started again, and what it gives is compared; it takes a minute or two"
        )
        try:
            with dashboard(folder) as address:
                screen.say(f"dashboard: {address or _NO_DASHBOARD}")
                _tell(screen, folder.absolute(), args)
        except DemoFailed as failure:
            screen.fail(f"FAILED: {failure}\nEverything is kept in {folder}")
            keep = True
            return 1
        except KeyboardInterrupt:
            screen.fail("interrupted")
            return 130
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        if keep:
            screen.say(f"kept in {folder}: log, job, clicks, sales, minutes, large, {log_file(folder).name}")
    return 0


def _tell(screen: Screen, folder: Path, args: argparse.Namespace) -> None:
    """The story."""
    events = generate(args.events)
    write_log(events, folder / "log")
    truth = truth_of(events)
    screen.say(
        f"{len(events.clicks):,} clicks of {len(truth.clicks)} users and {len(events.orders):,} orders of "
        f"{len(truth.sales)} products are in the event log in {folder}; {events.late:,} orders come minutes late"
    )
    epochs = max(_EPOCHS, 4 * (args.kills + 1))
    story = Story(screen, folder, rows_per_epoch=max(1, -(-args.events // 2 // epochs)), events=len(events))
    for killed in range(args.kills):
        story.run(killed, kill_at=len(events) * (killed + 1) // (args.kills + 1))
    job = story.run(args.kills, kill_at=None)
    try:
        _prove(screen, folder, truth, args.kills)
        if args.stay:
            _stay(screen, folder, job, len(events.orders) + PARTITIONS)
        else:
            job.stop()
    finally:
        job.kill()


class Story:
    """The runs of the job, and what is done to it meanwhile."""

    def __init__(self, screen: Screen, folder: Path, *, rows_per_epoch: int, events: int) -> None:
        self._screen, self._folder, self._rows_per_epoch, self._events = screen, folder, rows_per_epoch, events
        self._has_changed_limit = False

    def run(self, killed: int, *, kill_at: int | None) -> JobProcess:
        """One run of the job: until so many events are published and the next epoch is under way, or until all are."""
        run, first = f"run {killed + 1}", standing(self._folder).epoch
        where = "in a process of its own" if killed == 0 else "again, with the same command in the same folder"
        self._screen.say(f"{run}: starting the job {where} (Spark needs 10 to 30 s)")
        job = JobProcess(self._folder, self._rows_per_epoch)
        try:
            while job.exit_code() is None:
                now = standing(self._folder)
                self._screen.update(run if now.epoch > first else f"{run} starts", now.events, now.epoch, killed)
                self._change_limit(run, now)
                if kill_at is not None and now.epoch > first and now.events >= kill_at and now.staged:
                    processes = job.kill()
                    left = _left_behind(standing(self._folder))
                    self._screen.say(f"{run}: SIGKILL to its {processes} processes; {left}")
                    return job
                if kill_at is None and now.events >= self._events and self._has_changed_limit:
                    read = f"{now.events:,} events in {now.epoch + 1} epochs"
                    self._screen.say(f"{run}: has read and published everything: {read}")
                    return job
                time.sleep(_POLL_S)
        except BaseException:
            job.kill()
            raise
        ended = f"{run} ended with exit code {job.exit_code()}"
        raise DemoFailed(f"{ended}; its log ends with\n\n{log_tail(self._folder)}\n")

    def _change_limit(self, run: str, now: Standing) -> None:
        """Once, when half of the events are published."""
        if self._has_changed_limit or now.events < self._events // 2:
            return
        change_limit(self._folder / "log", LATER_LIMIT_CENTS)
        self._has_changed_limit = True
        before, after = money(FIRST_LIMIT_CENTS), money(LATER_LIMIT_CENTS)
        self._screen.say(
            f"{run}: the rule changes while the job runs: large orders are those above {after}, not {before}"
        )


def _left_behind(now: Standing) -> str:
    """What a kill left on disk."""
    if now.planned > now.committed:
        begun = f"epoch {now.planned} was under way with {now.staged} files staged and will be computed again"
    else:
        begun = f"epoch {now.committed} was committed and will be published first"
    return f"epoch {now.epoch} was published, {begun}"


def _prove(screen: Screen, folder: Path, truth: Truth, kills: int) -> None:
    clicks, sales = compare_clicks(folder / "clicks", truth), compare_sales(folder / "sales", truth)
    minutes = compare_minutes(read_minutes(folder / "minutes"), truth.minutes)
    large = compare_limits(read_large(folder / "large"), truth.orders, FIRST_LIMIT_CENTS, LATER_LIMIT_CENTS)
    proofs = [
        proof.of_totals("Clicks per user", "user", clicks, "{:,}".format),
        proof.of_totals("Sales per product", "product", sales, proof.money),
        proof.of_minutes("Sales per product and minute, corrected as late orders came", minutes),
        proof.of_limits("Large orders, by a limit that changed", large),
    ]
    for one in proofs:
        screen.show(one)
    if wrong := [key for one in proofs for key in one.wrong]:
        raise DemoFailed(f"the job's output differs from the truth for {', '.join(wrong[:10])}")
    events, rows = (clicks.total().events + sales.total().events, clicks.total().rows + sales.total().rows)
    screen.say(f"exact after {kills} kills: {events:,} events in, {rows:,} rows out, none lost, none doubled")


def _stay(screen: Screen, folder: Path, job: JobProcess, number: int) -> None:
    """Let orders come, one a second, until somebody ends it."""
    status = f"headwater status {folder / 'job'}"
    screen.say(f"the job goes on, with an order each second, until Ctrl-C; see the dashboard, or {status}")
    try:
        while job.exit_code() is None:
            append_order(folder / "log", number)
            number += 1
            time.sleep(1.0)
    except KeyboardInterrupt:
        screen.say("ending the job")
        job.stop()
        return
    raise DemoFailed(f"the job ended with exit code {job.exit_code()}; its log ends with\n\n{log_tail(folder)}\n")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m headwater.demo", description=__doc__)
    options.add_argument("--events", type=int, default=120_000, metavar="N", help="how many; default 120000")
    options.add_argument("--kills", type=int, default=2, metavar="N", help="how often to kill the job; default 2")
    options.add_argument("--folder", type=Path, help="an empty or new folder to work in; it is kept")
    options.add_argument("--stay", action="store_true", help="let the job go on in the end, until Ctrl-C")
    options.add_argument("--keep", action="store_true", help="keep the temporary folder")
    args = options.parse_args(given)
    if args.events < 1_000:
        options.error("--events must be at least 1000")
    if not 0 <= args.kills <= 20:
        options.error("--kills must be 0 to 20")
    if args.folder is not None and args.folder.exists() and any(args.folder.iterdir()):
        options.error(f"--folder must be empty or new; {args.folder} holds something")
    return args


if __name__ == "__main__":
    sys.exit(main())
