"""The page of metrics is written from their catalogue, and the dashboard shows nothing that is not in it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

from headwater.metrics.catalogue import CATALOGUE

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
DASHBOARD = json.loads((REFERENCE / "grafana-dashboard.json").read_text())


def test_the_page_of_metrics_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("write_metrics", REFERENCE / "write_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (REFERENCE / "metrics.md").read_text() == module.page(), "run docs/reference/write_metrics.py"


def test_names_follow_the_manners_of_prometheus() -> None:
    names = [metric.name for metric in CATALOGUE]
    assert len(names) == len({*names})
    for metric in CATALOGUE:
        assert re.fullmatch(r"headwater_(job|step|source)_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") is (metric.kind == "counter")


def test_every_metric_of_the_dashboard_exists_with_the_labels_it_uses() -> None:
    known = {metric.name: {*metric.labels} for metric in CATALOGUE if metric.kind != "histogram"}
    for metric in CATALOGUE:
        if metric.kind == "histogram":
            known[f"{metric.name}_bucket"] = {*metric.labels, "le"}
    queries = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(queries) >= len(DASHBOARD["panels"]) > 10
    for query in queries:
        names = re.findall(r"headwater_\w+", query["expr"])
        assert names
        assert {*names} <= known.keys()
        shown = {*re.findall(r"\{\{(\w+)\}\}", query["legendFormat"])}
        assert shown <= set.intersection(*(known[name] for name in names))
    asked = [variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"]
    assert asked == ["label_values(headwater_job_running, job_name)"]
    assert {panel["id"] for panel in DASHBOARD["panels"]} == {*range(1, len(DASHBOARD["panels"]) + 1)}
