"""The API is as its OpenAPI document says: requests made from the document, good and bad ones, get what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from tests.parts.examples import examples
from tests.web.conftest import ADDRESS, TOKEN
from tests.web.job_folders import make_job_folder

from headwater.web.app import WebApp
from headwater.web.endpoints import ENDPOINTS
from headwater.web.openapi import description
from headwater.web.server import LIMITS
from headwater.web.watched import WatchedJobs

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The document, with the application behind it and a job whose id is among the examples."""
    folder: Path = tmp_path_factory.mktemp("jobs")
    make_job_folder(folder / "orders")
    jobs = WatchedJobs([folder])
    document = description()
    for path in document["paths"].values():
        for parameter in (one for operation in path.values() for one in operation.get("parameters", ())):
            if parameter["name"] == "job":
                parameter["schema"] = {"type": "string", "enum": [jobs.all()[0].id, "0" * 12]}
    found: Any = schemathesis.openapi.from_dict(document)
    found.app = WebApp(jobs, TOKEN, LIMITS).asgi()
    found.config.update(base_url=ADDRESS)
    return found


PLACES = [(one.path, one.method) for one in ENDPOINTS]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize(("path", "method"), PLACES, ids=[f"{method} {path}" for path, method in PLACES])
def test_every_request_is_answered_as_described(described: Any, path: str, method: str, mode: GenerationMode) -> None:
    seen = []

    @hypothesis.given(case=described[path][method].as_strategy(generation_mode=mode))
    @hypothesis.settings(
        examples(10), suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate]
    )
    def answers(case: schemathesis.Case) -> None:
        seen.append(case.call_and_validate(headers=HEADERS))

    answers()
    assert seen
