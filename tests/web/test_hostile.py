"""Requests that are not meant well: each is refused with a reason, logged once in a while, and changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, TOKEN

from headwater.web.endpoints import ENDPOINTS
from headwater.web.guard import RefusalLog

PLACES = [(one.method, one.path.replace("{job}", "0" * 12).replace("{name}", "monday")) for one in ENDPOINTS]
PLACES += [("GET", "/api/events"), ("GET", "/api/openapi.json")]


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer ", TOKEN, f"Basic {TOKEN}", f"bearer {TOKEN}"])
def test_every_place_of_the_api_wants_the_token(client: TestClient, given: str | None) -> None:
    client.headers.pop("Authorization")
    headers = {} if given is None else {"Authorization": given}
    answers = [client.request(method, path, headers=headers) for method, path in PLACES]
    assert {answer.status_code for answer in answers} == {401}
    assert not any(TOKEN in answer.text for answer in answers)


def test_the_token_in_an_address_opens_nothing(client: TestClient) -> None:
    client.headers.pop("Authorization")
    assert client.get(f"/api/jobs?token={TOKEN}").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:9", "localhost:8080.evil.example", ""])
@pytest.mark.parametrize("path", ["/", "/app.js", "/api/jobs"])
def test_another_host_header_is_refused(client: TestClient, host: str, path: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421


def test_the_other_name_of_this_machine_is_good(client: TestClient) -> None:
    assert client.get("/api/jobs", headers={"Host": "localhost:8080"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": ADDRESS},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_a_page_of_another_site_asks_for_is_refused(
    client: TestClient, job: str, headers: dict[str, str], method: str
) -> None:
    place = f"{job}/stop" if method == "POST" else job
    answer = client.request(method, place, headers=headers, json={} if method == "POST" else None)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_our_own_page_may_ask(client: TestClient, job: str) -> None:
    headers = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    assert client.get(job, headers=headers).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_as_forms_send_it_is_refused(client: TestClient, job: str, kind: str) -> None:
    answer = client.post(f"{job}/stop", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../app.py",
        "/app.js/../../app.py",
        "/sources.sha256",
        "//etc/passwd",
        "/api/jobs/..%2f..%2fetc",
        "/api/jobs/../../../etc/passwd",
        "/api/jobs/%00",
    ],
)
def test_no_path_leads_to_a_file(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "name", ["..", "../up", "/etc/cron.d/x", "a/b", "a\\b", "", ".hidden", "a" * 65, "a\n", "a\x00"]
)
def test_a_savepoint_is_named_and_never_a_path(client: TestClient, job: str, name: str, stopped_job: Path) -> None:
    before = sorted(stopped_job.parent.rglob("*"))
    for place, body in ((f"{job}/savepoints", {"name": name}), (f"{job}/stop", {"savepoint": name})):
        assert client.post(place, json=body).status_code == 400
    assert sorted(stopped_job.parent.rglob("*")) == before


def test_a_key_of_a_million_characters_is_refused(client: TestClient, job: str) -> None:
    body = {"step": "totals", "state": "slices", "key": "k" * 1_000_000}
    assert client.post(f"{job}/state/lookup", json=body).status_code == 413
    assert client.post(f"{job}/state/lookup", json={**body, "key": "k" * 20_000}).status_code == 400
    assert client.get(job).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'{"drain": 1}', b'{"other": 1}', b"\xff", b"[" * 30_000])
def test_a_body_that_is_not_as_described_is_refused(client: TestClient, job: str, body: bytes) -> None:
    answer = client.post(f"{job}/stop", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "limit=1&limit=2", "skip=-1", "other=1", "limit=1e2"]
)
def test_a_query_that_is_not_as_described_is_refused(client: TestClient, job: str, query: str) -> None:
    assert client.get(f"{job}/epochs?{query}").status_code == 400


@pytest.mark.parametrize("path", ["/", "/api/jobs", "/nowhere"])
def test_every_answer_forbids_foreign_scripts_and_frames(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def test_refusals_are_logged_without_a_line_of_the_attackers(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "headwater.web"):
        client.get("/api/x%0AINFO%20all%20is%20well", headers={"Host": "evil.example"})
        client.get("/api/jobs", headers={"Authorization": "Bearer wrong"})
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert not any("\n" in record.getMessage() for record in caplog.records)


def test_a_thousand_refusals_are_one_line_and_a_number(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    clock, refused = [0.0], []
    from starlette.requests import Request

    from headwater.serving.refused import Refused

    request = Request(
        {"type": "http", "method": "GET", "path": "/x", "headers": [], "query_string": b"", "server": None}
    )
    log = RefusalLog(lambda: clock[0])
    with caplog.at_level(logging.WARNING, "headwater.web"):
        for _ in range(1_000):
            log.note(request, Refused(401, "no"))
        clock[0] = 11.0
        log.note(request, Refused(401, "no"))
    refused = [record.getMessage() for record in caplog.records]
    assert len(refused) == 2
    assert "999 others" in refused[1]
