"""Ways out for the metrics of a job: `hw.Environment(..., metrics=hw.metrics.prometheus(port=9464))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import JobError

if TYPE_CHECKING:
    from headwater.metrics.endpoint import PrometheusMetrics
    from headwater.metrics.instruments import OpenTelemetryMetrics

__all__ = ["opentelemetry", "prometheus"]


def prometheus(
    port: int = 9464, *, host: str = "127.0.0.1", token: str | None = None, registry: Any = None
) -> PrometheusMetrics:
    """Serve the metrics of the job at http://127.0.0.1:9464/metrics while it runs, as Prometheus asks for them.

    With port 0 any is taken that is free. Beyond this machine a `token` is needed, which is sent as `Authorization: Bearer`.
    With a `registry` of prometheus_client nothing is served: they are among what the application serves of it.
    """
    try:
        from headwater.metrics.endpoint import PrometheusMetrics
    except ImportError:
        raise JobError.not_supported(
            "hw.metrics.prometheus needs the package prometheus-client", "pip install 'headwater[metrics]'"
        ) from None
    return PrometheusMetrics(port, host, token, registry)


def opentelemetry(provider: Any = None) -> OpenTelemetryMetrics:
    """Give the metrics of the job to OpenTelemetry: to a meter provider, or to the one that the application has set.

    Where they go, and how often, its readers and exporters say.
    """
    try:
        from headwater.metrics.instruments import OpenTelemetryMetrics
    except ImportError:
        raise JobError.not_supported(
            "hw.metrics.opentelemetry needs the package opentelemetry-sdk", "pip install 'headwater[otel]'"
        ) from None
    return OpenTelemetryMetrics(provider)
