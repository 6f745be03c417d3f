"""What drivers leave in the job folder for those who look: the outline of a run, and the durations of its epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.job import durations
from headwater.job.durations import DurationsFile, read_durations
from headwater.job.engine import Settings
from headwater.job.outline import JobOutline, outline_of
from headwater.plan.plan import plan_job


def outline() -> JobOutline:
    env = hw.Environment("doc", engine="local")
    marks = hw.Watermarks.bounded("ts", "5 s").with_idleness("30 s")
    orders = env.source(hw.connectors.log("log", "orders"), "user string, ts long", marks, name="orders")
    windowed = orders.key_by("user").window(hw.tumbling("1 min")).allow_lateness("1 h")
    windowed.agg(n=hw.count()).with_uid("counts").sink(hw.connectors.memory(), name="out")
    settings = Settings(Path("job"), 500, 100, 1_000, bounded=False, spark_config={"spark.password": "hunter2"})
    return outline_of(plan_job(env.graph, 2, 128), settings, "spark", 5)


def test_an_outline_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = outline()
    made.write(tmp_path / "outline")
    assert JobOutline.read(tmp_path / "outline") == made


def test_an_outline_tells_steps_levels_windows_and_where_times_come_from() -> None:
    made = outline()
    assert [(step.uid, step.level, step.times_from) for step in made.steps] == [
        ("orders", 0, ("orders",)),
        ("counts", 1, ("orders",)),
        ("out", 1, ("orders",)),
    ]
    orders, counts, _ = made.steps
    assert orders.watermarks is not None
    assert (orders.watermarks.text, orders.watermarks.idle_ms) == ("from ts, 5 s behind", 30_000)
    assert counts.window is not None
    assert (counts.window.every_ms, counts.window.size_ms, counts.window.lateness_ms) == (60_000, 60_000, 3_600_000)
    assert [(path.source, path.sink) for path in made.paths] == [("orders", "out")]


def test_an_outline_holds_no_value_of_a_setting_of_spark() -> None:
    made = outline()
    assert made.settings["spark: spark.password"] == "set by the program"
    assert "hunter2" not in made.to_text()


def test_durations_of_the_newest_epochs_are_kept_and_older_ones_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "_KEPT_LINES", 5)
    file = DurationsFile(tmp_path / "durations", lambda: 1.5)
    for epoch in range(23):
        file.add(epoch, {"compute": 0.4567})
        assert len((tmp_path / "durations").read_text().splitlines()) <= 10
    found = read_durations(tmp_path / "durations")
    assert min(found) >= 13
    assert (found[22].phases_ms, found[22].published_ms) == ({"compute": 456.7}, 1_500)


def test_a_torn_line_of_durations_is_passed_over_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "durations"
    DurationsFile(path).add(1, {"compute": 1.0})
    path.write_bytes(path.read_bytes() + b'{"crc32": 12, "ep')
    DurationsFile(path).add(2, {"compute": 2.0})
    assert list(read_durations(path)) == [1, 2]


def test_durations_of_a_job_that_has_none_are_none(tmp_path: Path) -> None:
    assert read_durations(tmp_path / "durations") == {}
