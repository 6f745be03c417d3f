"""What a person sees of jobs, streams and statuses in a shell."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus, RestartReason, StepStatus
from headwater.job.watermark_text import mark_text

BAD = hw.OutputTag("bad", "k string")


class Check(hw.ProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> Any:
        if event.n > 5:
            ctx.output(BAD, (event.k,))
        else:
            yield event


def built() -> tuple[hw.Environment, hw.Step]:
    env = hw.Environment("orders", engine="local")
    rows = env.from_rows([("a", 3), ("b", 7), ("a", 4)], "k string, n long", hw.Watermarks.monotonous("n"))
    return env, rows.process(Check(), "k string, n long")


def test_a_stream_tells_step_key_schema_and_what_it_carries() -> None:
    env, checked = built()
    totals = checked.key_by("k").agg(n=hw.sum("n")).as_changelog(key="k")
    assert repr(checked) == "<Step check: k string, n bigint>"
    assert repr(checked.key_by("k")) == "<KeyedStream check by k: k string, n bigint>"
    assert repr(checked.side_output(BAD)) == "<Stream check.bad: k string>"
    assert repr(checked.union(checked)) == "<Stream check + check: k string, n bigint>"
    assert repr(totals) == "<Step as_changelog: k string, n bigint (upsert by k)>"
    windows = checked.key_by("k").window(hw.tumbling("1 s"))
    assert repr(windows) == "<WindowedStream tumbling(1000 ms): k string, n bigint>"
    assert repr(checked.connect(checked)) == f"<ConnectedStreams {checked!r} and {checked!r}>"
    assert repr(checked.join(totals)) == f"<JoinedStreams {checked!r} and {totals!r}>"
    assert [repr(hw.session("1 s")), repr(hw.triggers.count(3))] == ["<session(1000 ms)>", "<CountTrigger()>"]
    assert repr(env) == "<Environment orders on local: 4 steps>"


def test_a_job_and_its_status_tell_where_they_stand() -> None:
    env, checked = built()
    checked.key_by("k").agg(n=hw.sum("n")).sink(hw.connectors.memory())
    checked.side_output(BAD).sink(hw.connectors.memory(), name="bad")
    job = env.run()
    assert repr(job) == "<Job orders finished epoch=0 published=0>"
    assert str(job.status()).splitlines() == [
        "finished epoch=0 published=0",
        "step   rows in  rows out  watermark",
        "rows         3         3  end",
        "check        3         3  end        to bad=1",
        "agg          2         1  end        state kept=1",
    ]
    assert repr(job.status().steps["check"]) == "<StepStatus rows_in=3 rows_out=3 watermark=end to bad=1>"


def test_a_job_that_has_not_begun_or_has_failed_says_so() -> None:
    reason = RestartReason(1, 5, 10, "ValueError", "no such thing\nTraceback", None)
    status = JobStatus("restarting", error="step 'a' failed\nand more", restarts=(reason,))
    assert str(JobStatus("running")) == "running, no epoch yet"
    assert str(dataclasses.replace(status, epoch=3)).splitlines() == [
        "restarting epoch=3 published=none",
        "error: step 'a' failed",
        "started again 1 times, last after ValueError: no such thing",
    ]


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (MIN_TIMESTAMP, "none yet"),
        (MAX_TIMESTAMP, "end"),
        (1_704_067_200_123, "2024-01-01 00:00:00.123"),
        (MAX_TIMESTAMP - 1, f"{MAX_TIMESTAMP - 1} ms"),
    ],
)
def test_a_watermark_is_a_time_or_a_word(at_ms: int, text: str) -> None:
    assert mark_text(at_ms) == text
    assert f"watermark={text}" in repr(StepStatus(watermark_ms=at_ms))
    assert repr(SplitStatus(3, at_ms, is_idle=True)) == f"<SplitStatus rows_in=3 watermark={text} idle last rows never>"
