"""Budgets of state on the local engine: warnings, a clean failure, and state that moves to disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw

ROWS = [(f"user {n % 400:04}", n) for n in range(800)]
EXPECTED = sorted((f"user {n % 400:04}", n // 400 + 1) for n in range(800))


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield ctx.key, self.seen.get()


def job(budget: Any, **settings: Any) -> tuple[hw.Environment, Any]:
    """A count for each of 400 users, of 25 bytes each, in 16 epochs."""
    env = hw.Environment("budgets", engine="local", max_rows_per_epoch=50, state_budget=budget, **settings)
    sink = hw.connectors.memory()
    rows = env.from_rows(ROWS, "user string, n long")
    rows.key_by("user").process(Count(), "user string, n long", name="counts").sink(sink)
    return env, sink


def test_a_job_within_its_budget_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    env, sink = job({"counts": "1 MB"})
    env.run()
    assert not [one for one in caplog.records if one.name == "headwater.state"]
    assert sorted(map(tuple, sink.rows)) == EXPECTED


def test_a_budget_that_is_nearly_used_is_told_with_the_forecast_and_then_that_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env, sink = job({"counts": hw.budget("7 kB", on_full="warn")})
    env.run(clock=lambda epoch: epoch * 60_000)
    nearly, full = [one.getMessage() for one in caplog.records if one.name == "headwater.state"]
    assert "step 'counts' has used 90 % of its state budget: 6.3 kB of 7.0 kB" in nearly
    assert "an hour, so" in nearly
    assert "in a week" in nearly
    assert "the job goes on" in full
    assert "to bound it: clear it" in full
    assert sorted(map(tuple, sink.rows)) == EXPECTED


def test_a_job_fails_before_it_commits_the_epoch_that_needs_more_and_is_not_tried_again() -> None:
    env, sink = job({"counts": "5 kB"}, restart=hw.restart.fixed(3, delay="1 ms"))
    started = env.start()
    with pytest.raises(hw.StateBudgetExceeded, match=r"step 'counts' may keep 5.0 kB of state") as raised:
        started.wait()
    status, error = started.status(), raised.value
    assert (error.step, error.budget_bytes, status.restarts) == ("counts", 5_000, ())
    assert error.used_bytes > 5_000
    assert f"in epoch {status.published + 1}, which was not committed" in str(error)
    assert len(sink.rows) == 50 * (status.published + 1)
    assert started.explain_state()["counts"].size_bytes <= 5_000


def test_state_that_has_used_its_budget_moves_to_disk_and_the_job_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    env, sink = job({"counts": hw.budget("5 kB", on_full="spill")})
    assert env.explain_state()["counts"].place == "memory"
    done = env.run()
    assert done.explain_state()["counts"].place == "disk"
    assert sorted(map(tuple, sink.rows)) == EXPECTED
    assert (done.status().state, done.status().restarts) == ("finished", ())
    assert sum("moves to the workers' disks" in one.getMessage() for one in caplog.records) == 1


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_a_few_keys_that_are_written_again_and_again_do_not_use_the_budget_of_all(backend: Any) -> None:
    class Last(hw.KeyedProcessFunction):
        text = hw.ValueState("string")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.text.set("x" * event.n)
            return iter(())

    env = hw.Environment(
        "budgets", engine="local", max_rows_per_epoch=1_000, state_budget={"last": "500 kB"}, state_backend=backend
    )
    rows = [(key, 10) for key in range(5_000)] + [(at % 20, 10_000) for at in range(6_000)]
    source = env.from_rows(rows, "key long, n long")
    source.key_by("key").process(Last(), "n long").sink(hw.connectors.blackhole())
    size = next(one for one in env.run().explain_state()["last"].sizes if one.name == "text")
    assert size.size_bytes == pytest.approx(4_980 * (8 + 4 + 10) + 20 * (8 + 4 + 10_000), rel=0.05)


class Remind(hw.KeyedProcessFunction):
    """Keeps nothing but timers."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        ctx.timers.processing_time(ctx.now + 30 * 86_400_000)
        return iter(())

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        return iter(())


def test_timers_alone_can_have_a_budget() -> None:
    env = hw.Environment("budgets", engine="local", max_rows_per_epoch=50, state_budget={"remind": "1 kB"})
    env.from_rows(ROWS, "user string, n long").key_by("user").process(Remind(), "n long").sink(
        hw.connectors.blackhole()
    )
    with pytest.raises(hw.StateBudgetExceeded, match=r"bound what it keeps \(set timers for what is due soon"):
        env.run()


def test_what_a_budget_lasts_for_follows_from_what_grows(caplog: pytest.LogCaptureFixture) -> None:
    class Seen(hw.KeyedProcessFunction):
        """A new key each second, and each is written again before it expires."""

        count = hw.ValueState("long", default=0, ttl=hw.ttl("2 min", clock="event"))

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.count.set(self.count.get() + 1)
            return iter(())

    rows = [(key, 1000 * at) for at in range(600) for key in (at, *range(at % 60, at, 60))]
    budget = {"seen": hw.budget("16 kB", on_full="warn")}
    env = hw.Environment("budgets", engine="local", max_rows_per_epoch=60, state_budget=budget)
    source = env.from_rows(rows, "key long, at long", hw.Watermarks.monotonous("at"))
    source.key_by("key").process(Seen(), "n long").sink(hw.connectors.blackhole())
    told = env.run().explain_state()
    growth = told["seen"].sizes[0].growth
    assert growth is not None
    assert (growth.is_level, growth.has_only_grown) == (False, True)
    assert growth.week_bytes == pytest.approx(24 * 3_600 * 168, rel=0.05)
    (warning,) = [one.getMessage() for one in caplog.records if one.name == "headwater.state"]
    assert "14.5 MB in a week; to bound it: a shorter ttl" in warning


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"count": "1 GB"}, r"'count' is none; the nearest are counts; those that do are 'counts'"),
        ({"rows": "1 GB"}, "'rows' is none"),
    ],
)
def test_a_budget_for_no_step_is_refused(budget: Any, said: str) -> None:
    env, _ = job(budget)
    with pytest.raises(hw.GraphError, match=said):
        env.start()


def test_state_that_is_always_in_memory_cannot_spill() -> None:
    class Forward(hw.ProcessFunction):
        kept = hw.OperatorListState("long")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            yield event

    env = hw.Environment("budgets", engine="local", state_budget={"forward": hw.budget("1 GB", on_full="spill")})
    env.from_rows([(1,)], "n long").process(Forward(), "n long").sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match="step 'forward' cannot spill: stateful_process keeps its working state"):
        env.explain_state()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hw.budget("2 GB", on_full="stop"), "on_full= one of 'warn', 'fail', 'spill'"),  # type: ignore[arg-type]
        (lambda: hw.budget("0 B"), "needs more than nothing"),
        (lambda: hw.budget("many"), "a state budget"),
        (lambda: hw.Environment("budgets", state_budget="2 GB"), "by the uids of steps"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_budget_is_refused(make: Any, said: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=said):
        make()


def test_a_part_of_a_job_is_looked_at_without_the_budgets_of_the_rest() -> None:
    env, _ = job({"counts": "1 MB"})
    assert env.from_rows([(1,)], "n long", name="other").collect() == [(1,)]
