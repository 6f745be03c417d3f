"""Writes metrics.md from the catalogue of metrics."""

from __future__ import annotations

from pathlib import Path

from headwater.metrics.catalogue import CATALOGUE

HEAD = """\
# Metrics

These are the metrics of a job that runs, by the names that Prometheus sees. [How to](../howto/metrics.md) says how to
get them out. All of them are of this run: after a start of the driver, counters begin at 0 again. An epoch that is
computed again after a failure counts once.

| name | kind | labels | what |
| --- | --- | --- | --- |
"""

TAIL = """\

OpenTelemetry has the same names without `_total`. A histogram is three counters there: its name with `_count`, `_sum`
and `_bucket`, of which the last has a label `le`, as in Prometheus.

What your functions measure is there too, with the labels `job_name` and `step`:

| in the function | in Prometheus |
| --- | --- |
| `ctx.metrics.counter("refused").inc()` | `headwater_user_refused_total`, a counter |
| `ctx.metrics.meter("hits").mark()` | `headwater_user_hits_total`, a counter; `rate()` gives the rate |
| `ctx.metrics.gauge("open").set(7)` | `headwater_user_open`, a gauge, summed over subtasks; see `over_subtasks=` |
| `ctx.metrics.histogram("amount", buckets=(1, 10)).update(3)` | `headwater_user_amount_bucket`, `…_sum`, `…_count` |
"""


def page() -> str:
    """The page as it should be."""
    rows = (
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.words} |\n"
        for one in CATALOGUE
    )
    return f"{HEAD}{''.join(rows)}{TAIL}"


if __name__ == "__main__":
    Path(__file__).with_name("metrics.md").write_text(page())
