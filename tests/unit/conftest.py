"""Unit tests run without Spark: a test or test module below this folder that imports pyspark fails."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator

import pytest

from headwater.state.disk.bound import Bound, bound_of

_FORBIDDEN = "pyspark"


@pytest.fixture(autouse=True)
def no_pyspark() -> Iterator[None]:
    """Tests of other folders may have imported pyspark before; what counts is whether this test does."""
    before = _FORBIDDEN in sys.modules
    yield
    if not before and _FORBIDDEN in sys.modules:
        pytest.fail("this unit test imported pyspark; move it to tests/spark, or import less")


@pytest.fixture(autouse=True)
def nothing_on_disk_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test leaves open has a part in the bound of all that come after it in this process."""
    bounds = set()

    def noted(size_bytes: int) -> Bound:
        bound = bound_of(size_bytes)
        bounds.add(bound)
        return bound

    monkeypatch.setattr("headwater.task.entry.bound_of", noted)
    yield
    left = [(bound, holder) for bound in bounds for holder in bound._holders]
    for bound, holder in left:
        bound.leave(holder)
    if left:
        pytest.fail("this test left state on disk open; close its hosts, harnesses and jobs")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for the import of a test module."""
    before = _FORBIDDEN in sys.modules
    report = yield
    if isinstance(collector, pytest.Module) and not before and _FORBIDDEN in sys.modules:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} imported pyspark; unit tests run without Spark"
    return report
