"""Jobs that are larger than any page: nothing breaks, and nothing that is answered grows without end."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient
from tests.web.conftest import Connect
from tests.web.job_folders import START_MS, make_job_folder, status_of, windowed_plan

from headwater.control.pages import EpochPages
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus
from headwater.late_rows import SHOWN
from headwater.web.endpoints import ENDPOINTS

STEPS, EPOCHS = 500, 100_000
PAGES = [one.path for one in ENDPOINTS if one.method == "GET" and not one.asks_job and not one.path.endswith("firing")]


def place(client: TestClient) -> str:
    return f"/api/jobs/{client.get('/api/jobs').json()['jobs'][0]['id']}"


def test_five_hundred_steps_and_ten_thousand_late_rows_break_no_page(tmp_path: Path, connect: Connect) -> None:
    make_job_folder(tmp_path / "wide", mapped=STEPS, late=10_000, epochs=range(20))
    client = connect(tmp_path)
    job = place(client)
    answers = [client.get(path.replace("/api/jobs/{job}", job)) for path in PAGES]
    assert [answer.status_code for answer in answers] == [200] * len(PAGES)
    assert len(client.get(f"{job}/graph").json()["steps"]) == STEPS + 3
    late = client.get(f"{job}/late").json()["steps"]
    assert (sum(one["late"] for one in late), sum(len(one["late_rows"]) for one in late)) == (10_000, SHOWN)


def test_a_history_of_a_hundred_thousand_epochs_is_read_in_pages(tmp_path: Path, connect: Connect) -> None:
    layout = make_job_folder(tmp_path / "long", epochs=range(100))
    line = layout.epochs.read_text().splitlines()[-1]
    with layout.epochs.open("a") as out:
        out.writelines(f"{line}\n" for _ in range(EPOCHS - 101))
    last = line.replace('"epoch":99,', f'"epoch":{EPOCHS},')  # its checksum does not fit, as after a crash
    with layout.epochs.open("a") as out:
        out.write(f"{last}\n")
    client = connect(tmp_path)
    job = place(client)
    newest = client.get(f"{job}/epochs", params={"limit": 500}).json()
    assert (newest["total"], {one["epoch"] for one in newest["epochs"]}) == (EPOCHS, {99})
    oldest = client.get(f"{job}/epochs", params={"skip": EPOCHS - 3, "limit": 500}).json()
    assert [one["epoch"] for one in oldest["epochs"]] == [2, 1, 0]
    beyond = client.get(f"{job}/epochs", params={"skip": EPOCHS + 5}).json()
    assert beyond["epochs"] == []
    assert client.get(job).status_code == 200


def test_pages_follow_a_history_that_grows_and_one_that_is_cut(tmp_path: Path) -> None:
    layout = make_job_folder(tmp_path / "job", epochs=range(3))
    lines = layout.epochs.read_bytes().splitlines(keepends=True)
    layout.epochs.write_bytes(b"".join(lines[:2]) + lines[2][:10])
    pages = EpochPages(layout.epochs)
    assert [one.epoch for one in pages.page(0, 10)[1]] == [1, 0]
    with layout.epochs.open("ab") as out:
        out.write(lines[2][10:])
    assert [one.epoch for one in pages.page(0, 10)[1]] == [2, 1, 0]
    cut = layout.epochs.with_name("cut")
    cut.write_bytes(lines[2])
    cut.replace(layout.epochs)
    assert [one.epoch for one in pages.page(0, 10)[1]] == [2]


def test_a_source_of_thousands_of_splits_breaks_no_page(tmp_path: Path, connect: Connect) -> None:
    layout = make_job_folder(tmp_path / "many")
    splits = {f"{number}": SplitStatus(1, START_MS + number) for number in range(5_000)}
    told = status_of(windowed_plan())
    JobStatus("stopped", 41, 41, 41, told.steps, told.positions, splits={"orders": splits}).write(layout.status)
    client = connect(tmp_path)
    found = client.get(f"{place(client)}/watermarks").json()
    assert len(found["splits"]) == 5_000
    assert len(found["firings"][0]["holding"]) <= 100
