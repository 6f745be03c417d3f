"""Metrics as Prometheus and OpenTelemetry get them, from a job that runs."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import headwater as hw
from headwater.job.status import JobStatus
from headwater.metrics.catalogue import CATALOGUE
from headwater.metrics.look import Look

WATERMARKS = hw.Watermarks.bounded("t", "1 s")


class Measuring(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def process(self, row: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + row.n)
        ctx.metrics.counter("rows").inc()
        ctx.metrics.gauge("last").set(row.n)
        ctx.metrics.histogram("spread", buckets=(2, 5)).update(row.n)
        yield row


def measured(metrics: Any) -> hw.Environment:
    env = hw.Environment("measured", engine="local", max_rows_per_epoch=2, metrics=metrics)
    rows = [("a", number, number * 1000) for number in range(6)]
    numbers = env.from_rows(rows, "k string, n long, t long", WATERMARKS, name="numbers")
    numbers.key_by("k").process(Measuring(), "k string, n long, t long").with_uid("m").sink(hw.connectors.memory())
    return env


def in_the_middle(env: hw.Environment, look: Any) -> list[Any]:
    """Run a job, and look when the last epoch but one is published."""
    found = []

    def see(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED and epoch == 1:
            found.append(look())

    env.run(on_step=see)
    return found


def scraped(url: str, token: str | None = None) -> dict[str, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_prometheus_gets_every_metric_while_the_job_runs():
    prometheus = hw.metrics.prometheus(port=0)
    (found,) = in_the_middle(measured(prometheus), lambda: scraped(prometheus.url))
    job, step = ("job_name", "measured"), ("step", "m")
    split = (job, ("source", "numbers"), ("split", "0"))
    assert found["headwater_job_running", (job,)] == 1
    assert found["headwater_job_published_epoch", (job,)] == 1
    assert found["headwater_job_epoch_seconds_count", (job,)] == 2
    assert found["headwater_step_rows_in_total", (job, step)] == 4
    assert found["headwater_step_state_entries", (job, ("state", "total"), step)] == 1
    assert found["headwater_step_watermark_seconds", (job, step)] == 1.999
    assert found["headwater_source_rows_total", split] == 4
    assert found["headwater_source_position", split] == 4
    assert found["headwater_user_rows_total", (job, step)] == 4
    assert found["headwater_user_last", (job, step)] == 3
    assert found["headwater_user_spread_bucket", (job, ("le", "2.0"), step)] == 3
    assert found["headwater_user_spread_bucket", (job, ("le", "+Inf"), step)] == 4
    assert found["headwater_user_spread_sum", (job, step)] == 6
    with pytest.raises(urllib.error.URLError):
        scraped(prometheus.url)  # the job has ended, and nobody listens


def test_metrics_that_others_can_reach_need_a_token():
    with pytest.raises(hw.GraphError, match="need a token where others can reach them"):
        hw.metrics.prometheus(host="0.0.0.0")
    prometheus = hw.metrics.prometheus(port=0, token="s3cret")
    assert "s3cret" not in repr(prometheus)

    def look() -> Any:
        for wrong in (None, "s3cre"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                scraped(prometheus.url, wrong)
        return scraped(prometheus.url, "s3cret")

    (found,) = in_the_middle(measured(prometheus), look)
    assert found["headwater_job_running", (("job_name", "measured"),)] == 1


def test_registry_of_an_application_has_them_too():
    registry = CollectorRegistry()
    env = measured(hw.metrics.prometheus(registry=registry))
    labels = {"job_name": "measured", "step": "m"}
    (found,) = in_the_middle(env, lambda: registry.get_sample_value("headwater_user_rows_total", labels))
    assert found == 4
    assert registry.get_sample_value("headwater_user_rows_total", labels) is None


def test_port_that_is_taken_keeps_the_job_from_starting():
    first = hw.metrics.prometheus(port=0)

    def look() -> None:
        port = int(first.url.split(":")[-1].split("/")[0])
        with pytest.raises(hw.JobError, match="metrics cannot be served"):
            measured(hw.metrics.prometheus(port=port)).run()

    assert in_the_middle(measured(first), look) == [None]


def test_way_out_is_for_one_job_at_a_time_and_for_the_next_one_after_it():
    prometheus = hw.metrics.prometheus(port=0)

    def look() -> None:
        with pytest.raises(hw.JobError, match="one job at a time, and job 'measured' runs"):
            measured(prometheus).run()

    assert in_the_middle(measured(prometheus), look) == [None]
    assert in_the_middle(measured(prometheus), lambda: 1) == [1]


def test_open_telemetry_observes_the_same():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)

    def look() -> dict[Any, Any]:
        (resource,) = reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        return {
            (metric.name, *sorted(point.attributes.items())): point.value
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    (found,) = in_the_middle(measured(hw.metrics.opentelemetry(provider)), look)
    job, step = ("job_name", "measured"), ("step", "m")
    assert found["headwater_step_rows_in", job, step] == 4
    assert found["headwater_job_epoch_seconds_count", job] == 2
    assert found["headwater_user_rows", job, step] == 4
    assert found["headwater_user_spread_bucket", job, ("le", "5.0"), step] == 4
    assert {name.removesuffix("_count").removesuffix("_sum").removesuffix("_bucket") for name, *_ in found} >= {
        metric.name.removesuffix("_total") for metric in CATALOGUE if "side" not in metric.name
    }
    assert reader.get_metrics_data() is None  # the job has ended


def test_time_of_epochs_is_from_their_plan_until_every_sink_has_them():
    now = [0.0]
    look = Look(lambda: now[0])

    class Still:
        name = "still"

        def status(self) -> JobStatus:
            return JobStatus("running")

    look.begin(Still())
    for step, at in ((hw.EpochStep.PLANNED, 1.0), (hw.EpochStep.STAGED, 2.0), (hw.EpochStep.PUBLISHED, 1.3)):
        now[0] = at
        look.see(step, 7)
    look.see(hw.EpochStep.PUBLISHED, 6)  # of an earlier driver
    seen = look.seen()
    assert seen is not None
    assert (seen.epochs.value, round(seen.epochs.total, 3)) == (1, 0.3)
    look.end()
    assert look.seen() is None


def test_what_is_no_way_out_is_refused():
    with pytest.raises(hw.GraphError, match=r"use hw.metrics.prometheus\(\)"):
        hw.Environment("x", metrics=9464)
