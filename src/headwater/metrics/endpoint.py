"""Metrics for Prometheus: an endpoint of their own, or in a registry that an application serves already."""

from __future__ import annotations

import hmac
import ipaddress
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from headwater.errors import GraphError, JobError
from headwater.job.watching import Watched
from headwater.measures import Measured
from headwater.metrics.catalogue import CATALOGUE, Metric, Seen, cumulative, user_metrics
from headwater.metrics.look import Look

_REQUEST_S = 10
"""How long a request may take: what scrapes is near, and asks for little."""
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class PrometheusMetrics(Look):
    """Serves the metrics of the job that runs, from its start to its end."""

    def __init__(self, port: int, host: str, token: str | None, registry: CollectorRegistry | None) -> None:
        super().__init__()
        if registry is None and token is None and not _is_loopback(host):
            raise GraphError.bad_argument(
                "metrics", "need a token where others can reach them", f"host={host!r}", "give token=..., or no host"
            )
        self._port, self._host, self._token, self._own = port, host, token, registry is None
        self._registry = CollectorRegistry() if registry is None else registry
        self._collector = _JobCollector(self)
        self._server: WSGIServer | None = None

    def __repr__(self) -> str:
        return f"PrometheusMetrics({self.url})" if self._own else "PrometheusMetrics(in a registry)"

    @property
    def url(self) -> str:
        """Where to ask for metrics; with port 0, known when the job has begun."""
        port = self._port if self._server is None else self._server.server_port
        return f"http://{self._host}:{port}/metrics"

    def begin(self, job: Watched) -> None:
        super().begin(job)
        try:
            if self._own:
                self._serve()
            self._registry.register(self._collector)
        except BaseException:
            self._stop()
            raise

    def end(self) -> None:
        self._registry.unregister(self._collector)
        self._stop()

    def _stop(self) -> None:
        super().end()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _serve(self) -> None:
        app = _with_token(make_wsgi_app(self._registry), self._token)
        try:
            self._server = make_server(self._host, self._port, app, _Server, _Handler)
        except OSError as error:
            raise JobError.not_supported(
                f"metrics cannot be served at {self._host}:{self._port}: {error.strerror or error}",
                "name another port, or 0 for any that is free",
            ) from None
        threading.Thread(target=self._server.serve_forever, name="headwater-metrics", daemon=True).start()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name it has above
        """Requests are nobody's news."""


class _JobCollector(Collector):
    """Asks the job when Prometheus does."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def describe(self) -> Iterable[Any]:
        return []  # else it would be asked before there is a job

    def collect(self) -> Iterator[Any]:
        seen = self._look.seen()
        if seen is not None:
            for metric in (*CATALOGUE, *user_metrics(seen)):
                yield _family(metric, seen)


def _family(metric: Metric, seen: Seen) -> Any:
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.words, labels=metric.labels)
        for labels, one in metric.of(seen):
            assert isinstance(one, Measured)
            histogram.add_metric(labels, cumulative(one), one.total)
        return histogram
    family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
        metric.name, metric.words, labels=metric.labels
    )
    for labels, number in metric.of(seen):
        assert not isinstance(number, Measured)
        family.add_metric(labels, number)
    return family


def _with_token(app: Wsgi, token: str | None) -> Wsgi:
    if token is None:
        return app
    expected = f"Bearer {token}".encode()

    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if hmac.compare_digest(str(environ.get("HTTP_AUTHORIZATION", "")).encode(), expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
        return [b"send the token as 'Authorization: Bearer ...'\n"]

    return guarded


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
