"""Metrics through OpenTelemetry: instruments that are observed whenever the application's reader collects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from headwater.epoch.steps import EpochStep
from headwater.job.watching import Watched
from headwater.measures import Measured
from headwater.metrics.catalogue import CATALOGUE, Metric, Seen, cumulative, user_metrics
from headwater.metrics.look import Look

Observed = Callable[[CallbackOptions], Iterable[Observation]]


class OpenTelemetryMetrics(Look):
    """Instruments over the job that runs. What reads them, and where to, is the provider's."""

    def __init__(self, provider: MeterProvider | None) -> None:
        super().__init__()
        self._provider = provider
        self._known: set[str] = set()

    def begin(self, job: Watched) -> None:
        super().begin(job)
        for metric in CATALOGUE:
            self._create(metric)

    def see(self, step: EpochStep, epoch: int) -> None:
        super().see(step, epoch)
        if step is EpochStep.PUBLISHED and (seen := self.seen()) is not None:
            for metric in user_metrics(seen):
                self._create(metric)

    def _create(self, metric: Metric) -> None:
        """Make the instruments of a metric, once: they cannot be taken away. A histogram is three counters."""
        if metric.name in self._known:
            return
        self._known.add(metric.name)
        meter = (self._provider or get_meter_provider()).get_meter("headwater")
        name = metric.name.removesuffix("_total")
        if metric.kind == "histogram":
            for part, of in (("count", _counts), ("sum", _sums), ("bucket", _buckets)):
                meter.create_observable_counter(
                    f"{name}_{part}", [self._observed(metric, of)], description=metric.words
                )
        elif metric.kind == "counter":
            meter.create_observable_counter(name, [self._observed(metric, _numbers)], description=metric.words)
        else:
            meter.create_observable_gauge(name, [self._observed(metric, _numbers)], description=metric.words)

    def _observed(self, metric: Metric, of: Callable[[Metric, Seen], Iterator[Observation]]) -> Observed:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            seen = self.seen()
            return [] if seen is None else of(metric, seen)

        return observe


def _numbers(metric: Metric, seen: Seen) -> Iterator[Observation]:
    for labels, number in metric.of(seen):
        assert not isinstance(number, Measured)
        yield Observation(number, dict(zip(metric.labels, labels, strict=True)))


def _histograms(metric: Metric, seen: Seen) -> Iterator[tuple[dict[str, str], Measured]]:
    for labels, one in metric.of(seen):
        assert isinstance(one, Measured)
        yield dict(zip(metric.labels, labels, strict=True)), one


def _counts(metric: Metric, seen: Seen) -> Iterator[Observation]:
    return (Observation(one.value, labels) for labels, one in _histograms(metric, seen))


def _sums(metric: Metric, seen: Seen) -> Iterator[Observation]:
    return (Observation(one.total, labels) for labels, one in _histograms(metric, seen))


def _buckets(metric: Metric, seen: Seen) -> Iterator[Observation]:
    for labels, one in _histograms(metric, seen):
        yield from (Observation(count, {**labels, "le": bound}) for bound, count in cumulative(one))
