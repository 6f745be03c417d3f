"""What the API answers for a job that was stopped, from its folder alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from starlette.testclient import TestClient
from tests.web.conftest import Connect
from tests.web.job_folders import HOSTILE, START_MS, TRACE, late_row, make_job_folder, status_of, windowed_plan

from headwater.job.layout import JobLayout
from headwater.late_rows import LateRow


def test_jobs_are_listed_with_where_they_stand(client: TestClient) -> None:
    (found,) = client.get("/api/jobs").json()["jobs"]
    assert (found["name"], found["state"], found["is_running"], found["published"]) == ("orders", "stopped", False, 41)
    assert (found["rows_in"], found["late"], found["dead_letters"], found["restarts"]) == (1_000, 37, 3, 1)
    assert found["watermark_ms"] == START_MS + 33_000


def test_graph_has_steps_with_their_levels_inputs_and_where_time_goes(client: TestClient, job: str) -> None:
    found = client.get(f"{job}/graph").json()
    steps = {step["uid"]: step for step in found["steps"]}
    assert list(steps) == ["orders", "filter-0", "totals", "files"]
    assert [step["level"] for step in steps.values()] == [0, 0, 1, 1]
    assert steps["totals"]["inputs"] == [{"step": "filter-0", "tag": None, "exchange": "key_by(user)"}]
    assert steps["totals"]["window"] == "tumbling(10000 ms)"
    assert steps["totals"]["busy"] == round(500_000 / (490_000 * 2), 4)
    assert abs(sum(step["time_share"] for step in steps.values()) - 1) < 0.01
    assert steps["files"]["is_sink"] is True


def test_epochs_come_newest_first_with_their_phases_and_in_pages(client: TestClient, job: str) -> None:
    newest = client.get(f"{job}/epochs", params={"limit": 2}).json()
    assert [one["epoch"] for one in newest["epochs"]] == [41, 40]
    assert newest["epochs"][0]["phases_ms"] == {
        "compute": 400,
        "manifest": 10,
        "commit": 50,
        "publish": 20,
        "clean": 10,
    }
    assert newest["total"] == 42
    older = client.get(f"{job}/epochs", params={"skip": 40, "limit": 10}).json()
    assert [one["epoch"] for one in older["epochs"]] == [1, 0]


def test_watermarks_name_the_split_that_holds_event_time_back(client: TestClient, job: str) -> None:
    found = client.get(f"{job}/watermarks").json()
    assert [one["split"] for one in found["splits"] if one["is_holding"]] == ["1"]
    assert found["strategies"] == {"orders": "from ts, 2 s behind"}
    (firing,) = found["firings"]
    assert (firing["verdict"], firing["end_ms"], firing["missing_ms"]) == ("waits", START_MS + 40_000, 6_999)
    assert [one["split"] for one in firing["holding"]] == ["1"]
    assert firing["holding"][0]["since_ms"] == START_MS + 40_000


def test_a_window_that_event_time_is_past_has_fired(client: TestClient, job: str) -> None:
    found = client.get(f"{job}/firing", params={"step": "totals", "end_ms": START_MS + 30_000}).json()
    assert (found["verdict"], found["holding"]) == ("fired", [])


def test_a_step_without_windows_is_refused_with_those_that_have_some(client: TestClient, job: str) -> None:
    answer = client.get(f"{job}/firing", params={"step": "orders"})
    assert answer.status_code == 409
    assert "those with windows are totals" in answer.json()["error"]


def test_state_has_its_size_growth_and_forecast(client: TestClient, job: str) -> None:
    (found,) = client.get(f"{job}/state").json()["steps"]
    assert (found["step"], found["entries"], found["bytes"], found["bytes_per_h"]) == ("totals", 50, 4_096, 1_024)
    assert (found["day_bytes"], found["week_bytes"]) == (28_672, 176_128)
    assert found["states"] == [{"name": "slices", "entries": 50, "bytes": 4_096}]


def test_state_of_a_job_that_does_not_run_cannot_be_looked_up(client: TestClient, job: str) -> None:
    answer = client.post(f"{job}/state/lookup", json={"step": "totals", "state": "slices", "key": "ann"})
    assert answer.status_code == 409
    assert "no process runs it" in answer.json()["error"]


def test_late_rows_are_counted_by_step_and_epoch(client: TestClient, job: str) -> None:
    found = client.get(f"{job}/late").json()
    totals = next(one for one in found["steps"] if one["step"] == "totals")
    assert (totals["late"], totals["dead_letters"], totals["late_to"]) == (37, 3, None)
    assert found["history"][-1] == {"epoch": 41, "late": 37, "dead_letters": 3}


def test_the_newest_late_rows_are_shown_first_and_times_that_a_browser_cannot_hold_are_left_out(
    tmp_path: Path, connect: Connect
) -> None:
    layout = make_job_folder(tmp_path / "orders")
    status = status_of(windowed_plan(), late=2)
    odd = LateRow(1 << 60, 1 << 61, None, None, 12, 40)
    steps = {**status.steps, "totals": replace(status.steps["totals"], late_rows=[late_row(3), odd])}
    replace(status, steps=steps).write(layout.status)
    client = connect(tmp_path)
    (job,) = client.get("/api/jobs").json()["jobs"]
    steps_told = client.get(f"/api/jobs/{job['id']}/late").json()["steps"]
    (totals,) = [one for one in steps_told if one["step"] == "totals"]
    newest, before = totals["late_rows"]
    assert newest == {"epoch": 40, "timestamp_ms": None, "late_by_ms": None, "key": None, "row": None, "rows": 12}
    assert (before["late_by_ms"], json.loads(before["key"])) == (13_003, HOSTILE)


def test_sinks_tell_their_guarantee_and_how_far_they_are(client: TestClient, job: str) -> None:
    found = client.get(f"{job}/sinks").json()
    assert (found["published"], found["waiting"]) == (41, [])
    ((path,),) = [sink["paths"] for sink in found["sinks"]]
    assert (path["source"], path["guarantee"]) == ("orders", "exactly-once")


def test_failures_show_what_the_users_code_raised(client: TestClient, job: str) -> None:
    (restart,) = client.get(f"{job}/failures").json()["restarts"]
    assert (restart["message"], restart["step"]) == (TRACE, "totals")


def test_settings_are_as_users_say_them_and_hold_no_secret(client: TestClient, job: str) -> None:
    answer = client.get(f"{job}/settings")
    assert answer.json()["settings"]["checkpoint_interval"] == "500 ms"
    assert answer.json()["settings"]["spark: spark.secret"] == "set by the program"
    assert "hunter2" not in answer.text


def test_a_savepoint_that_is_not_there_is_told_as_damaged(client: TestClient, job: str) -> None:
    assert client.get(f"{job}/savepoints").json()["savepoints"] == []
    found = client.post(f"{job}/savepoints/monday/check", json={}).json()
    assert (found["is_whole"], found["steps"]) == (False, {})


def test_a_damaged_job_folder_is_shown_with_what_is_wrong_and_hides_no_other(tmp_path: Path, connect: Connect) -> None:
    make_job_folder(tmp_path / "good")
    JobLayout(tmp_path / "bad").path.mkdir()
    JobLayout(tmp_path / "bad").job.write_text("{")
    bad, good = connect(tmp_path).get("/api/jobs").json()["jobs"]
    assert (bad["state"], good["state"]) == ("unreadable", "stopped")
    assert "bad/job.json" in bad["error"]


def test_a_job_whose_files_cannot_be_read_is_told_as_that(tmp_path: Path, connect: Connect) -> None:
    layout = make_job_folder(tmp_path / "job")
    layout.epochs.unlink()
    layout.epochs.mkdir()  # a root user reads everything but this
    client = connect(tmp_path)
    (found,) = client.get("/api/jobs").json()["jobs"]
    assert found["state"] == "unreadable"
    answer = client.get(f"/api/jobs/{found['id']}/epochs")
    assert (answer.status_code, answer.json()) == (500, {"error": "a file of the job cannot be read: Is a directory"})


def test_the_page_and_its_parts_are_served_packed_and_not_again(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    sizes = [int(client.get(f"/{name}").headers["content-length"]) for name in ("app.js", "app.css", "icon.svg")]
    assert sum(sizes) + int(page.headers["content-length"]) < 200_000
    again = client.get("/app.js", headers={"If-None-Match": client.get("/app.js").headers["etag"]})
    assert again.status_code == 304
