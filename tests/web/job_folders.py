"""Job folders as drivers leave them, made with the drivers' own writers, of any size and without an engine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import headwater as hw
from headwater.epoch.manifest import Published
from headwater.epoch.offset import Offset
from headwater.job.checkpoints.history import EpochLine
from headwater.job.durations import DurationsFile
from headwater.job.engine import Settings
from headwater.job.identity import JobIdentity, shape_of
from headwater.job.layout import JobLayout
from headwater.job.outline import outline_of
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus, RestartReason, StepStatus
from headwater.late_rows import SHOWN, LateRow
from headwater.plan.plan import JobPlan, plan_job

START_MS = 1_767_225_600_000
ORDER = "user string, ts timestamp, amount double"
TRACE = "step 'totals' failed for key 'ann'\nTraceback:\n  File \"job.py\", line 7, in process\nZeroDivisionError: no"


HOSTILE = "<img src=x onerror=alert(1)>"


def late_row(number: int) -> LateRow:
    """A row of a user with a hostile name, as a step shows it; the last one came after the end of the input."""
    row = json.dumps({"user": HOSTILE, "ts": "2026-01-01 00:00:20+00:00", "note": "x" * 330, "number": number})
    late_by_ms = None if number == SHOWN - 1 else 13_000 + number
    return LateRow(START_MS + 20_000 - number, late_by_ms, json.dumps(HOSTILE), row, epoch=20 + number)


def windowed_plan(mapped: int = 1) -> JobPlan:
    """Orders, so many steps after another, and totals per ten seconds into a file."""
    env = hw.Environment("orders", engine="local")
    marks = hw.Watermarks.bounded("ts", "2 s")
    stream = env.source(hw.connectors.log("log", "orders"), ORDER, marks, name="orders").with_uid("orders")
    for number in range(mapped):
        stream = stream.filter(lambda row: row.amount >= 0).with_uid(f"filter-{number}")
    totals = stream.key_by("user").window(hw.tumbling("10 s")).agg(total=hw.sum("amount")).with_uid("totals")
    totals.sink(hw.connectors.files("out")).with_uid("files")
    return plan_job(env.graph, 2, 128)


def status_of(plan: JobPlan, *, late: int = 0, state: str = "stopped") -> JobStatus:
    """Where the job stands after epoch 41: its split 1 has been silent for a minute."""
    now_ms = START_MS + 100_000
    work = {"busy_us": 500_000, "state_bytes": 4_096, "subtasks": 2, "busiest_rows": 600, "largest_state": 30}
    step = StepStatus(1_000, 900, watermark_ms=START_MS + 33_000, work=work)
    steps = {plan.graph.uid(node): step for node in plan.graph if not node.is_sink}
    growth = {"bytes_per_hour": 1_024, "day_bytes": 28_672, "week_bytes": 176_128}
    steps["totals"] = replace(
        step,
        state={"slices": 50},
        state_bytes={"slices": 4_096},
        growth=growth,
        counters={"late_dropped": late, "dead_letters": 3},
        late_rows=[late_row(number) for number in range(min(late, SHOWN))],
    )
    splits = {
        "0": SplitStatus(900, START_MS + 97_000, last_rows_ms=now_ms, moved_ms=now_ms),
        "1": SplitStatus(100, START_MS + 33_000, last_rows_ms=START_MS + 40_000, moved_ms=START_MS + 40_000),
    }
    return JobStatus(
        state,
        41,
        41,
        41,
        steps,
        {"orders": {"0": 900, "1": 100}},
        splits={"orders": splits},
        now_ms=now_ms,
        since_ms=START_MS,
    )


def make_job_folder(path: Path, *, mapped: int = 1, late: int = 37, epochs: Iterable[int] = range(42)) -> JobLayout:
    """The folder of a job that was stopped."""
    plan, layout = windowed_plan(mapped), JobLayout(path)
    layout.outbox.path.mkdir(parents=True)
    layout.lock.touch()
    JobIdentity("orders", "0123abcd", shape_of(plan)).write(layout.job)
    status = status_of(plan, late=late)
    status.write(layout.status)
    settings = Settings(path, 500, 100, 1_000_000, bounded=False, spark_config={"spark.secret": "hunter2"})
    outline_of(plan, settings, "spark", START_MS).write(layout.outline)
    Published(41, positions={"orders": {"0": 900, "1": 100}}).write(layout.outbox.published)
    reason = RestartReason(1, START_MS + 5_000, 1_000, "StepFailed", TRACE, "totals")
    layout.restarts.write_text(f"{reason.to_text()}\n")
    durations = DurationsFile(layout.durations)
    with layout.epochs.open("w") as out:
        for epoch in epochs:
            out.write(f"{_line(epoch, status).to_text()}\n")
            if epoch < 100:
                durations.add(epoch, {"compute": 0.4, "manifest": 0.01, "commit": 0.05, "publish": 0.02, "clean": 0.01})
    return layout


def _line(epoch: int, status: JobStatus) -> EpochLine:
    at_ms = START_MS + epoch * 1000
    offset = Offset(epoch + 1, False, {"orders": {"0": epoch, "1": 0}}, START_MS, at_ms)
    return EpochLine(epoch, at_ms, 490, offset, {"orders": {"0": 0, "1": 0}}, status.steps, 80_000)
