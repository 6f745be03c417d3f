"""`verify` lets jobs pass that are right, and finds what is wrong with others by the variation that should find it."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.testing import UnfitInput, VerificationFailed, verify
from headwater.testing.script_source import Script
from headwater.testing.verification.inputs import Input

SALE = "shop string, n long, t long"
ROWS = [(f"shop-{number % 3}", number, number * 7 - number % 3 * 9) for number in range(24)]
WATERMARKS = hw.Watermarks.bounded("t", "60 ms")


def sales(env: hw.Environment) -> hw.Stream:
    return env.source(hw.connectors.log("nowhere", "sales"), SALE, WATERMARKS, name="sales")


class Running(hw.KeyedProcessFunction):
    """Right: what it keeps is declared."""

    total = hw.ValueState("long", default=0)

    def process(self, sale: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + sale.n)
        yield {"shop": sale.shop, "total": self.total.get()}


class AtTheEnd(Running):
    """Right: what it gives depends on event time alone."""

    def process(self, sale: Any, ctx: hw.Context) -> None:
        self.total.set(self.total.get() + sale.n)
        ctx.timers.event_time(10_000)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield {"shop": ctx.key, "total": self.total.get()}


TOTAL = "shop string, total long"


def of_shops(function: hw.KeyedProcessFunction):
    return lambda env: sales(env).key_by("shop").process(function, TOTAL)


def test_job_that_is_right_passes_all_variations():
    def build(env):
        stream = sales(env)
        stream.key_by("shop").window(hw.tumbling("30 ms")).agg(n=hw.sum("n")).sink(
            hw.connectors.files("windows"), name="windows"
        )
        stream.key_by("shop").process(AtTheEnd(), TOTAL).sink(hw.connectors.memory(), name="totals")

    verified = verify(build, {"sales": ROWS})
    assert sorted(verified["totals"]) == [("shop-0", 84), ("shop-1", 92), ("shop-2", 100)]
    assert sum(row[-1] for row in verified["windows"]) == sum(n for _, n, _ in ROWS)
    assert verified.runs == {"again": 1, "slices": 3, "arrival": 3, "crashes": 7, "savepoints": 3}
    assert not verified.kept_in_order


def test_rows_that_replace_each_other_are_compared_by_the_last_one():
    with pytest.raises(VerificationFailed) as caught:
        verify(of_shops(Running()), ROWS)
    assert caught.value.variation == "arrival"  # totals on the way depend on the order; the last ones do not
    verified = verify(of_shops(Running()), ROWS, keys={"result": "shop"})
    assert sorted(verified["result"]) == [("shop-0", 84), ("shop-1", 92), ("shop-2", 100)]


def test_changelogs_are_compared_by_the_table_they_make():
    def build(env):
        env.create_view("sales", sales(env))
        return {
            "retracted": env.sql(
                "SELECT n, COUNT(*) AS shops FROM (SELECT shop, MAX(n) % 2 AS n FROM sales GROUP BY shop) GROUP BY n"
            ),
            "upserted": env.sql("SELECT shop, SUM(n) AS n FROM sales GROUP BY shop"),
        }

    verified = verify(build, ROWS, runs=2)
    assert sorted(verified["upserted"]) == [("shop-0", 84), ("shop-1", 92), ("shop-2", 100)]
    assert sorted(verified["retracted"]) == [(0, 1), (1, 2)]


def test_order_that_is_promised_by_key_is_compared():
    verify(of_shops(Running()), ROWS, variations=["slices", "crashes", "savepoints"], order={"result": "shop"})

    class Backwards(hw.KeyedProcessFunction):
        """Gives the rows of an epoch together, the last one first."""

        def process(self, sale, ctx):
            ctx.timers.processing_time(ctx.now)
            self.waiting = [sale.n, *getattr(self, "waiting", [])]

        def on_timer(self, timer, ctx):
            waiting, self.waiting = self.waiting, []
            yield from ({"shop": ctx.key, "total": n} for n in waiting)

    one_shop = [("a", n, n) for n in range(6)]
    verify(of_shops(Backwards()), one_shop, variations=["slices"])
    with pytest.raises(VerificationFailed, match="has the rows of a key in another order"):
        verify(of_shops(Backwards()), one_shop, variations=["slices"], order={"result": ["shop"]})


# -- jobs that are wrong --------------------------------------------------------------------------------------------


class First(hw.KeyedProcessFunction):
    """Wrong where rows may come out of order: it takes the row that comes first for the earliest one."""

    seen = hw.ValueState("boolean", default=False)

    def process(self, sale: Any, ctx: hw.Context) -> Any:
        if not self.seen.get():
            self.seen.set(True)
            yield {"shop": sale.shop, "total": sale.n}


class Undeclared(hw.KeyedProcessFunction):
    """Wrong: what it keeps on itself is lost in a crash."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, sale: Any, ctx: hw.Context) -> None:
        self.totals[ctx.key] = self.totals.get(ctx.key, 0) + sale.n
        ctx.timers.event_time(10_000)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield {"shop": ctx.key, "total": self.totals.get(ctx.key, 0)}


LEFT_BEHIND: dict[str, int] = {}


class InTheModule(hw.KeyedProcessFunction):
    """Wrong: what is in a module is neither lost with a run nor taken back with an epoch."""

    def __init__(self, totals: dict[str, int]) -> None:
        self._at = id(totals)
        BY_ID[self._at] = totals

    def process(self, sale: Any, ctx: hw.Context) -> None:
        totals = BY_ID[self._at]
        totals[ctx.key] = totals.get(ctx.key, 0) + sale.n
        ctx.timers.event_time(10_000)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield {"shop": ctx.key, "total": BY_ID[self._at][ctx.key]}


BY_ID: dict[int, dict[str, int]] = {}


class FirstOfShop(hw.ProcessFunction):
    """Wrong on another number of subtasks: what it has seen is dealt out to them, and shops go elsewhere."""

    seen = hw.OperatorListState("string")

    def process(self, sale: Any, ctx: hw.Context) -> Any:
        if sale.shop not in self.seen.get():
            self.seen.add(sale.shop)
            yield {"shop": sale.shop, "total": 1}


def by_shop_without_a_key(env: hw.Environment) -> hw.Stream:
    dealt = sales(env).partition_custom(lambda shop, subtasks: int(shop[-1]) % subtasks, "shop")
    return dealt.process(FirstOfShop(), TOTAL)


def per_epoch(env: hw.Environment) -> hw.Stream:
    """Wrong: counts what happens to come together."""

    def counted(table: pa.Table) -> pa.Table:
        return pa.table({"shop": table["shop"], "total": [len(table)] * len(table)})

    return sales(env).map_batches(counted, TOTAL)


def wall_clock(env: hw.Environment) -> hw.Stream:
    return sales(env).map(lambda sale: {"shop": sale.shop, "total": time.time_ns()}, TOTAL)


def job_clock(env: hw.Environment) -> hw.Stream:
    class Stamp(hw.KeyedProcessFunction):
        def process(self, sale, ctx):
            yield {"shop": sale.shop, "total": ctx.now}

    return sales(env).key_by("shop").process(Stamp(), TOTAL)


def dice(env: hw.Environment) -> hw.Stream:
    return sales(env).map(lambda sale: {"shop": sale.shop, "total": random.getrandbits(60)}, TOTAL)


def with_its_own_module(env: hw.Environment) -> hw.Stream:
    """Each run begins with nothing, so only a crash shows what is wrong."""
    return of_shops(InTheModule({}))(env)


@pytest.mark.parametrize(
    ("build", "variation"),
    [
        pytest.param(wall_clock, "again", id="wall clock"),
        pytest.param(dice, "again", id="chance"),
        pytest.param(of_shops(InTheModule(LEFT_BEHIND)), "again", id="left behind in a module"),
        pytest.param(per_epoch, "slices", id="what comes together"),
        pytest.param(job_clock, "slices", id="processing time"),
        pytest.param(of_shops(First()), "arrival", id="order of arrival"),
        pytest.param(with_its_own_module, "crashes", id="survives a crash"),
        pytest.param(of_shops(Undeclared()), "crashes", id="lost in a crash"),
        pytest.param(by_shop_without_a_key, "savepoints", id="rescaled wrongly"),
    ],
)
def test_wrong_job_is_found_by_the_variation_that_should_find_it(build, variation):
    with pytest.raises(VerificationFailed) as caught:
        verify(build, ROWS, seed=5)
    assert caught.value.variation == variation
    assert caught.value.output == "result"
    assert caught.value.missing or caught.value.unexpected
    assert f'variations=["{variation}"], seed=5' in str(caught.value)


def test_failure_shows_the_first_rows_that_differ_and_how_the_run_went():
    rows = [("a", 1, 0), ("a", 2, 5), ("b", 3, 6), ("b", 4, 7)]
    with pytest.raises(VerificationFailed) as caught:
        verify(of_shops(Undeclared()), rows, variations=["crashes"])
    text = str(caught.value)
    assert text.startswith("crashes: output 'result' is not what it is when all input is one batch\n")
    assert "one batch  this run  shop  total\n" in text
    assert "1          0         a     3\n" in text
    assert "the run: a crash at " in text


def test_same_seed_finds_the_same_difference():
    found = []
    for _ in range(2):
        with pytest.raises(VerificationFailed) as caught:
            verify(of_shops(First()), ROWS, variations=["arrival"], seed=3)
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_job_that_fails_in_one_way_only_is_a_failure():
    class Picky(hw.KeyedProcessFunction):
        def process(self, sale, ctx):
            if ctx.watermark > 0:
                raise ValueError("too late for me")

    with pytest.raises(VerificationFailed, match=r"slices: the job fails.*UserCodeError") as caught:
        verify(of_shops(Picky()), ROWS)
    assert caught.value.output is None


def test_job_that_fails_always_raises_its_own_error():
    with pytest.raises(hw.UserCodeError):
        verify(lambda env: sales(env).map(lambda sale: sale.missing, TOTAL), ROWS)


# -- what it takes --------------------------------------------------------------------------------------------------


def test_program_may_make_its_environment_itself_as_the_command_line_takes_it():
    def build():
        env = hw.Environment("own", job_dir="nowhere", parallelism=3)
        sales(env).key_by("shop").window(hw.tumbling("1 s")).agg(n=hw.sum("n")).sink(hw.connectors.files("x"), name="n")
        return env

    assert sum(row[-1] for row in verify(build, ROWS, runs=1)["n"]) == sum(n for _, n, _ in ROWS)


def test_tables_are_input_too():
    table = pa.table({"shop": ["a", "b"], "n": [1, 2], "t": [0, 1]})
    assert sorted(verify(of_shops(AtTheEnd()), table, runs=1)["result"]) == [("a", 1), ("b", 2)]


def test_no_rows_are_input_too():
    assert verify(of_shops(AtTheEnd()), [])["result"] == []


def test_rows_of_a_source_without_a_bound_stay_in_order():
    def build(env):
        plain = env.source(hw.connectors.log("nowhere", "plain"), "shop string, n long, t long", name="plain")
        return sales(env).union(plain).key_by("shop").process(First(), TOTAL).filter(lambda row: False)

    verified = verify(build, {"sales": ROWS, "plain": ROWS}, variations=["arrival"])
    assert verified.kept_in_order == ["plain"]
    assert verify(lambda env: env.from_rows([], SALE), ROWS, variations=["arrival"]).runs == {}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"orders": ROWS}, "got orders, and it has sales"),
        ([("a", 1, 100), ("a", 2, 39)], "row 1 comes 61 ms after a later one"),
    ],
)
def test_input_that_shows_nothing_is_refused(rows, message):
    with pytest.raises(UnfitInput, match=message):
        verify(of_shops(AtTheEnd()), rows)


def test_unknown_words_and_names_are_refused():
    with pytest.raises(ValueError, match="got 'crash'; choose among them"):
        verify(of_shops(AtTheEnd()), ROWS, variations=["crash"])
    with pytest.raises(UnfitInput, match="got 'result': user; the job has result with shop, total"):
        verify(of_shops(AtTheEnd()), ROWS, keys={"result": "user"})
    with pytest.raises(UnfitInput, match="has no sink and returns no stream"):
        verify(lambda env: None, ROWS)
    with pytest.raises(hw.JobError, match="must not run its job while it is loaded"):
        verify(lambda env: sales(env).collect(), ROWS)


def test_crashes_leave_no_word_in_the_log(caplog, capfd):
    verify(of_shops(AtTheEnd()), ROWS, variations=["crashes"])
    assert not caplog.records
    assert capfd.readouterr().err == ""


@examples(100)
@given(st.lists(st.integers(0, 200), max_size=30), st.integers(0, 50), st.integers(0, 99))
def test_shuffled_rows_stay_within_the_bound_and_all_come(times, bound_ms, seed):
    given_rows = Input(pa.table({"t": pa.array(times, pa.int64())}), np.array(times, np.int64), bound_ms)
    splits = given_rows.shuffled(random.Random(seed))
    assert sorted(t for split in splits for t in split.table["t"].to_pylist()) == sorted(times)
    for split in splits:
        came = np.array(split.table["t"].to_pylist(), np.int64)
        assert not len(came) or (np.maximum.accumulate(came) - came).max() <= bound_ms
        assert split.bounds[-1] == len(came)
        assert list(split.bounds) == sorted(split.bounds)


def test_script_of_several_splits_goes_on_by_itself():
    script = Script(pa.table({"n": [1, 2, 3]}), [2, 3])
    assert [script.after(0), script.after(2), script.after(3)] == [2, 3, 3]
