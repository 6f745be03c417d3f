"""`python -m headwater.demo`: events in, a job that is killed twice and restarted, and proof that its totals are exact."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from headwater.demo.check import compare_clicks, compare_sales
from headwater.demo.events import Truth, generate, truth_of, write_log
from headwater.demo.process import JobProcess, Standing, log_file, log_tail, standing
from headwater.demo.screen import Screen

_EPOCHS = 20
"""Enough that each run has some to be killed in; an epoch takes about half a second, whatever it holds."""
_POLL_S = 0.05
"""Much less than an epoch takes, so that a kill hits the one that was seen; looking costs about a millisecond."""


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
        try:
            _tell(screen, folder.absolute(), args.events, args.kills)
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
            screen.say(f"kept in {folder}: log, job, clicks, sales, {log_file(folder).name}")
    return 0


def _tell(screen: Screen, folder: Path, count: int, kills: int) -> None:
    """The story."""
    events = generate(count)
    write_log(events, folder / "log")
    truth = truth_of(events)
    screen.say(
        f"{len(events.clicks):,} clicks of {len(truth.clicks)} users and {len(events.orders):,} orders of "
        f"{len(truth.sales)} products are in the event log in {folder}"
    )
    epochs = max(_EPOCHS, 4 * (kills + 1))
    rows_per_epoch = max(1, -(-count // 2 // epochs))
    for killed in range(kills):
        _run(screen, folder, rows_per_epoch, killed, kill_at=len(events) * (killed + 1) // (kills + 1))
    _run(screen, folder, rows_per_epoch, kills, kill_at=None)
    _prove(screen, folder, truth, kills)


def _run(screen: Screen, folder: Path, rows_per_epoch: int, killed: int, *, kill_at: int | None) -> None:
    """One run of the job: to its end, or until so many events are published and the next epoch is under way."""
    run = f"run {killed + 1}"
    where = "in a process of its own" if killed == 0 else "again, with the same command in the same folder"
    screen.say(f"{run}: starting the job {where} (Spark needs 10 to 30 s)")
    first = standing(folder).epoch
    job = JobProcess(folder, rows_per_epoch)
    try:
        while job.exit_code() is None:
            now = standing(folder)
            screen.update(run if now.epoch > first else f"{run} starts", now.events, now.epoch, killed)
            if kill_at is not None and now.epoch > first and now.events >= kill_at and now.staged:
                processes = job.kill()
                screen.say(f"{run}: SIGKILL to its {processes} processes; {_left_behind(standing(folder))}")
                return
            time.sleep(_POLL_S)
        _check_end(screen, folder, run, job, kill_at)
    finally:
        job.kill()


def _check_end(screen: Screen, folder: Path, run: str, job: JobProcess, kill_at: int | None) -> None:
    if job.exit_code() != 0:
        raise DemoFailed(f"{run} ended with exit code {job.exit_code()}; its log ends with\n\n{log_tail(folder)}\n")
    if kill_at is not None:
        raise DemoFailed(f"{run} came to its end before it was killed; give it more with --events")
    now = standing(folder)
    screen.say(f"{run}: came to the end of the input: {now.events:,} events in {now.epoch + 1} epochs")


def _left_behind(now: Standing) -> str:
    """What a kill left on disk."""
    if now.planned > now.committed:
        begun = f"epoch {now.planned} was under way with {now.staged} files staged and will be computed again"
    else:
        begun = f"epoch {now.committed} was committed and will be published first"
    return f"epoch {now.epoch} was published, {begun}"


def _prove(screen: Screen, folder: Path, truth: Truth, kills: int) -> None:
    clicks, sales = compare_clicks(folder / "clicks", truth), compare_sales(folder / "sales", truth)
    screen.show("Clicks per user", "user", clicks, "{:,}".format)
    screen.show("Sales per product", "product", sales, lambda cents: f"{cents / 100:,.2f}")
    if not (clicks.exact and sales.exact):
        wrong = [line.key for line in clicks.lines + sales.lines if not line.exact]
        raise DemoFailed(f"the job's output differs from the truth for {', '.join(wrong[:10])}")
    events, rows = (clicks.total().events + sales.total().events, clicks.total().rows + sales.total().rows)
    screen.say(f"exact after {kills} kills: {events:,} events in, {rows:,} rows out, none lost, none doubled")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m headwater.demo", description=__doc__)
    options.add_argument("--events", type=int, default=120_000, metavar="N", help="how many; default 120000")
    options.add_argument("--kills", type=int, default=2, metavar="N", help="how often to kill the job; default 2")
    options.add_argument("--folder", type=Path, help="an empty or new folder to work in; it is kept")
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
