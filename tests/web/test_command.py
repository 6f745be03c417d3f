"""`headwater ui` as a process: it prints an address that opens, tells what changes, and ends when it is told to."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.web.job_folders import make_job_folder, status_of, windowed_plan

from headwater.cli.app import main
from headwater.web.foreground import beside

COUNTS = """
import headwater as hw

def build(env):
    env.from_rows([(1,), (2,)], "n long").key_by("n").agg(rows=hw.count()).sink(hw.connectors.blackhole())
"""
UI = [sys.executable, "-m", "headwater.cli", "ui"]


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], http.client.HTTPConnection, dict[str, str]]]:
    """The process, a connection to it, and the header that opens it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*UI, *arguments], text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            link = urlsplit(process.stdout.readline().strip())
            (token,) = parse_qs(link.query)["token"]
            assert link.hostname == "127.0.0.1"
            with closing(http.client.HTTPConnection(link.netloc, timeout=60)) as connection:
                yield process, connection, {"Authorization": f"Bearer {token}"}
        finally:
            process.kill()


def listed(connection: http.client.HTTPConnection, headers: dict[str, str]) -> list[str]:
    connection.request("GET", "/api/jobs", headers=headers)
    return [job["name"] for job in json.loads(connection.getresponse().read())["jobs"]]


def test_it_prints_an_address_that_opens_and_ends_with_sigterm_while_a_page_listens(tmp_path: Path) -> None:
    layout = make_job_folder(tmp_path / "orders")
    with started(str(tmp_path)) as (process, connection, headers):
        assert listed(connection, headers) == ["orders"]
        with closing(http.client.HTTPConnection(connection.host, connection.port, timeout=60)) as listening:
            listening.request("GET", "/api/events", headers=headers)
            events = listening.getresponse()
            assert events.headers["content-type"].startswith("text/event-stream")
            first = _event(events)
            status_of(windowed_plan(), state="failed").write(layout.status)
            second = _event(events)
            assert [first["jobs"][0]["state"], second["jobs"][0]["state"]] == ["stopped", "failed"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert events.read().strip() in (b"", b": still here")


def test_it_ends_with_who_started_it_and_tells_on_stderr_whom_it_refused(tmp_path: Path) -> None:
    with started("--until-eof", str(tmp_path)) as (process, connection, headers):
        assert listed(connection, headers) == []
        connection.request("GET", "/api/jobs", headers={"Authorization": "Bearer wrong"})
        assert connection.getresponse().status == 401
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert "WARNING headwater.web: refused (401) GET '/api/jobs'" in process.stderr.read()


def test_beside_a_job_it_prints_its_address_and_ends_with_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_job_folder(tmp_path / "orders")
    with beside(tmp_path / "orders", port=0):
        link = urlsplit(capfd.readouterr().out.strip())
        headers = {"Authorization": f"Bearer {parse_qs(link.query)['token'][0]}"}
        with closing(http.client.HTTPConnection(link.netloc, timeout=60)) as connection:
            assert listed(connection, headers) == ["orders"]
    with (
        closing(http.client.HTTPConnection(link.netloc, timeout=60)) as connection,
        pytest.raises(ConnectionRefusedError),
    ):
        connection.request("GET", "/")


def test_beside_a_job_that_prints_json_it_tells_its_address_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "job.py"
    program.write_text(COUNTS)
    monkeypatch.setattr("sys.argv", ["headwater", "run", str(program), "--job-dir", str(tmp_path / "job")])
    sys.argv += ["--engine", "local", "--ui", "--json"]
    with pytest.raises(SystemExit) as ended:
        main()
    said = capfd.readouterr()
    assert ended.value.code == 0
    assert json.loads(said.out)["state"] == "finished"
    assert "http://127.0.0.1:" in said.err


def test_a_job_whose_dashboard_has_no_port_is_not_started(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "job.py"
    program.write_text(COUNTS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setattr("sys.argv", ["headwater", "run", str(program), "--job-dir", str(tmp_path / "job")])
        sys.argv += ["--engine", "local", "--ui", "--ui-port", port]
        with pytest.raises(SystemExit) as ended:
            main()
    said = capfd.readouterr()
    assert (ended.value.code, said.out) == (1, "")
    assert f"cannot listen on 127.0.0.1:{port}" in said.err
    assert "the job was not started" in said.err


def test_it_tells_its_address_as_json(tmp_path: Path) -> None:
    command = [*UI, "--json", "--until-eof", str(tmp_path)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(60) == 0
    assert told["link"] == f"{told['url']}/?token={told['token']}"


def _event(events: http.client.HTTPResponse) -> dict[str, list[dict[str, str]]]:
    while not (line := events.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    found: dict[str, list[dict[str, str]]] = json.loads(line[6:])
    return found
