from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.job_folders import make_job_folder

from headwater.web.app import WebApp
from headwater.web.server import LIMITS
from headwater.web.watched import WatchedJobs

TOKEN = "the-token"
ADDRESS = "http://127.0.0.1:8080"
Connect = Callable[[Path], TestClient]


@pytest.fixture
def connect() -> Connect:
    """A client of a server for the jobs in a folder; it shows the token, and is on the server's own machine."""

    def connected(folder: Path) -> TestClient:
        app = WebApp(WatchedJobs([folder]), TOKEN, LIMITS).asgi()
        return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"})

    return connected


@pytest.fixture(scope="module")
def stopped_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the folder of a job that was stopped; tests read it."""
    folder = tmp_path_factory.mktemp("jobs")
    make_job_folder(folder / "orders")
    return folder


@pytest.fixture
def client(stopped_job: Path, connect: Connect) -> Iterator[TestClient]:
    with connect(stopped_job) as client:
        yield client


@pytest.fixture
def job(client: TestClient) -> str:
    """Where the API has the stopped job."""
    (found,) = client.get("/api/jobs").json()["jobs"]
    return f"/api/jobs/{found['id']}"
