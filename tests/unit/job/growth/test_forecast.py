"""Growth and forecasts, from courses that are known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headwater.data.batch import MIN_TIMESTAMP
from headwater.job.growth.course import MOST_POINTS, Point, Size, StateCourse, StepCourse
from headwater.job.growth.forecast import HOUR_MS, Growth, Lasting, growth_of
from headwater.job.status import JobStatus, StepStatus

MINUTE_MS = 60_000


def course(entries: Sequence[int], *, every_ms: int = MINUTE_MS, watermark_by: float | None = None) -> StepCourse:
    """A state of ten bytes an entry, at regular times; event time goes as many times as fast."""
    points = []
    for at, count in enumerate(entries):
        now_ms = at * every_ms
        mark = MIN_TIMESTAMP if watermark_by is None else round(now_ms * watermark_by)
        points.append(Point(now_ms, mark, {"n": Size(count, 10 * count)}))
    return StepCourse(points)


def test_steady_growth_goes_on_for_a_day_and_a_week() -> None:
    found = growth_of(course([100 * at for at in range(61)]), "n", None)
    assert found is not None
    assert (round(found.entries_per_hour), round(found.bytes_per_hour)) == (6_000, 60_000)
    assert (found.day_bytes, found.week_bytes) == (60_000 * 25, 60_000 * 169)
    assert (found.has_only_grown, found.is_level) == (True, False)


def test_the_newer_half_counts_not_the_filling_of_empty_state() -> None:
    found = growth_of(course([min(1_000 * at, 20_000) for at in range(61)]), "n", None)
    assert found is not None
    assert (found.bytes_per_hour, found.week_bytes, found.has_only_grown) == (0, 200_000, False)


def test_state_that_expires_grows_until_the_run_is_as_old_as_entries_get() -> None:
    lasting = Lasting(2 * HOUR_MS, "processing")
    found = growth_of(course([100 * at for at in range(61)]), "n", lasting)
    assert found is not None
    assert found.day_bytes == found.week_bytes == 120_000  # an hour was seen, and one more is to come
    assert (found.is_level, found.has_only_grown) == (False, False)


def test_a_run_that_is_older_than_entries_get_has_the_size_that_it_keeps() -> None:
    found = growth_of(
        course([min(at, 10) * 100 - 30 * (at % 2) for at in range(61)]), "n", Lasting(HOUR_MS // 6, "processing")
    )
    assert found is not None
    assert (found.is_level, found.day_bytes, found.week_bytes) == (True, 10_000, 10_000)


def test_entries_that_are_written_again_and_again_grow_however_short_they_last() -> None:
    lasting = Lasting(2 * MINUTE_MS, "processing", is_refreshed=True)
    found = growth_of(course([100 * at for at in range(61)]), "n", lasting)
    assert found is not None
    assert (found.is_level, found.has_only_grown, found.week_bytes) == (False, True, 60_000 * 169)
    found = growth_of(course([min(at, 10) * 100 - 30 * (at % 2) for at in range(61)]), "n", lasting)
    assert found is not None
    assert (found.is_level, found.has_only_grown, found.week_bytes) == (True, False, 10_000)
    found = growth_of(course([100 * at for at in range(61)]), "n", Lasting(2 * MINUTE_MS, "processing"))
    assert found is not None
    assert found.is_level  # what is not written again is gone by then, whatever comes


def test_what_a_fixed_number_of_entries_has_may_only_grow_too() -> None:
    def of(sizes: Sequence[int]) -> Growth:
        points = [Point(MINUTE_MS * at, MIN_TIMESTAMP, {"n": Size(10, size)}) for at, size in enumerate(sizes)]
        found = growth_of(StepCourse(points), "n", None)
        assert found is not None
        return found

    assert of([100 * at for at in range(61)]).has_only_grown
    assert not of([min(at, 20) for at in range(61)]).has_only_grown  # it has come to an end
    assert not of([100 * at - 150 * (at % 7) for at in range(61)]).has_only_grown  # something goes


def test_a_backfill_is_told_by_event_time() -> None:
    fast = course([100 * at for at in range(61)], watermark_by=60)
    assert fast.clock == "event"
    found = growth_of(fast, "n", Lasting(30 * HOUR_MS, "event"))
    assert found is not None
    assert round(found.entries_per_hour) == 100
    assert (found.is_level, found.day_bytes) == (True, 60_000)


@pytest.mark.parametrize("entries", [[], [5], [5, 9]])
def test_too_little_says_nothing(entries: list[int]) -> None:
    assert growth_of(course(entries), "n", None) is None


def test_when_no_time_passes_there_is_no_growth_by_the_hour() -> None:
    assert growth_of(course([1, 2, 3, 4], every_ms=0), "n", None) is None


def test_a_long_run_is_remembered_in_few_points_from_its_beginning_to_its_end() -> None:
    known = StateCourse()
    for epoch in range(10_000):
        step = StepStatus(state={"n": epoch}, state_bytes={"n": 10 * epoch})
        known.hear(JobStatus("running", epoch, steps={"f": step}, now_ms=1_000 * epoch))
    points = known.of("f").points
    assert len(points) <= MOST_POINTS + 1
    assert (points[0].now_ms, points[-1].now_ms) == (0, 9_999_000)
    found = growth_of(known.of("f"), "n", None)
    assert found is not None
    assert round(found.entries_per_hour) == 3_600
