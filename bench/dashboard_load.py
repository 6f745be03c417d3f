"""What looking at a job costs it: epochs under a thousand status requests a second, beside the same job left alone.

The dashboard is a process of its own, as `headwater ui` starts it; a second one asks it for the status of the job at a
fixed rate, over connections that stay open. The sides take turns, so that a noisy machine hurts both. Also printed: how
many requests a second were answered, and how long after its commit an epoch was in what the server tells.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
from parts.timing import print_result

import headwater as hw
from headwater.scratch import Scratch

CONNECTIONS = 8


class Counts(hw.KeyedProcessFunction):
    """A count per key."""

    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        yield (event.k, self.n.get())


class Commits:
    """When epochs were planned and committed."""

    def __init__(self) -> None:
        self.planned: list[float] = []
        self.committed: dict[int, float] = {}

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            self.planned.append(time.perf_counter())
        elif step is hw.EpochStep.COMMITTED:
            self.committed[epoch] = time.time()

    def durations(self, began: float) -> list[float]:
        """Seconds from one epoch to the next, since a moment."""
        return [after - before for before, after in pairwise(one for one in self.planned if one >= began)]


@contextmanager
def dashboard(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a dashboard, and the process of its own that it is in."""
    command = [sys.executable, "-m", "headwater.cli", "ui", "--until-eof", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield server.stdout.readline().strip(), psutil.Process(server.pid)
        server.stdin.close()


def connection(link: str) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    """A connection to the server, and the header that opens it."""
    parts = urlsplit(link)
    (token,) = parse_qs(parts.query)["token"]
    return http.client.HTTPConnection(parts.netloc, timeout=30), {"Authorization": f"Bearer {token}"}


class Asking:
    """A connection that asks one thing again and again, with little work: it is not what is measured."""

    def __init__(self, host: str, port: int, place: str, headers: dict[str, str]) -> None:
        lines = [
            f"GET {place} HTTP/1.1",
            f"Host: {host}:{port}",
            *(f"{name}: {text}" for name, text in headers.items()),
        ]
        self._request = "\r\n".join([*lines, "\r\n"]).encode()
        self._socket = socket.create_connection((host, port), timeout=30)
        self._waits = False

    def ask(self) -> None:
        """Ask once more, when the last answer is here."""
        self.hear()
        self._socket.sendall(self._request)
        self._waits = True

    def hear(self) -> None:
        """Take the answer that is due, if one is."""
        if not self._waits:
            return
        answer = self._socket.recv(1 << 16)
        while b"\r\n\r\n" not in answer:
            answer += self._more()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        left = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) - len(body)
        while left > 0:
            left -= len(self._more())
        self._waits = False

    def _more(self) -> bytes:
        more = self._socket.recv(1 << 16)
        assert more, "the server has closed the connection"
        return more


def ask(link: str, rate: float, seconds: float) -> int:
    """Ask for the status of the job so often, over several connections; the number of answers."""
    client, headers = connection(link)
    client.request("GET", "/api/jobs", headers=headers)
    place = f"/api/jobs/{json.loads(client.getresponse().read())['jobs'][0]['id']}"
    client.close()
    asking = [Asking(client.host, client.port, place, headers) for _ in range(CONNECTIONS)]
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        now = time.perf_counter()
        if now > began + seconds:
            return number  # the server could not keep up
        time.sleep(max(0.0, began + number / rate - now))
        asking[number % CONNECTIONS].ask()
    for one in asking:
        one.hear()
    return int(rate * seconds)


def delays(link: str, commits: Commits, seconds: float) -> list[float]:
    """How long after its commit each epoch was told of by the server, as pages hear it."""
    client, headers = connection(link)
    client.request("GET", "/api/events", headers=headers)
    events, end, found = client.getresponse(), time.time() + seconds, []
    seen: int | None = None
    while time.time() < end:
        line = events.readline()
        if line.startswith(b"data: "):
            newest, now = json.loads(line[6:])["jobs"][0]["committed"], time.time()
            since = newest if seen is None else seen  # the first event tells of what was there before
            found += [now - commits.committed[one] for one in range(since + 1, newest + 1) if one in commits.committed]
            seen = max(since, newest)
    client.close()
    return found


def load(link: str, rate: float, seconds: float) -> None:
    """The part of the process that asks."""
    print(ask(link, rate, seconds))


def main() -> None:
    """Measure in turns and print the ratio of the medians (1.1 and below is what is promised)."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rate", type=float, default=1_000)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--ask", metavar="LINK", help="only ask a server")
    args = options.parse_args()
    if args.ask:
        load(args.ask, args.rate, args.seconds)
        return
    folder = Scratch("bench-dashboard").path
    env = hw.Environment("watched", job_dir=folder / "job", checkpoint_interval="0 s")
    source = hw.connectors.generator(lambda i: (i % 1_000,), rate=5_000)
    env.source(source, "k long").key_by("k").process(Counts(), "k long, n long").sink(hw.connectors.blackhole())
    commits = Commits()
    job = env.start(on_step=commits)
    asked: list[float] = []
    alone: list[float] = []
    answered, cpu_s = 0, 0.0
    try:
        while len(commits.planned) < 20:
            time.sleep(0.1)
        with dashboard(folder) as (link, server):
            for _ in range(args.rounds):
                began = time.perf_counter()
                time.sleep(args.seconds)
                alone += commits.durations(began)
                began, used_s = time.perf_counter(), sum(server.cpu_times()[:2])
                command = [
                    sys.executable,
                    __file__,
                    "--ask",
                    link,
                    "--rate",
                    str(args.rate),
                    "--seconds",
                    str(args.seconds),
                ]
                answered += int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                asked += commits.durations(began)
                cpu_s += sum(server.cpu_times()[:2]) - used_s
            told = sorted(delays(link, commits, args.seconds))
        print(f"answered {answered / (args.rounds * args.seconds):,.0f} requests a second")
        print(f"each took the server {cpu_s / answered * 1e6:.0f} us of a processor, which it gives way with")
        print(f"an epoch is told of {statistics.median(told):.2f} s after its commit, at most {told[-1]:.2f} s")
        print_result("dashboard_load", "left_alone", statistics.median(asked) * 1000, statistics.median(alone) * 1000)
    finally:
        job.stop()


if __name__ == "__main__":
    main()
