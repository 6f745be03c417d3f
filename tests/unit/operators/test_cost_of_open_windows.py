"""An epoch costs what it touches, however many windows are open."""

from __future__ import annotations

import pytest

import headwater as hw

SCHEMA = "k string, v long"


class Collect(hw.ProcessWindowFunction):
    def process(self, elements, ctx):
        yield (len(elements),)


STEPS = {
    "by slices": lambda w: w.agg(n=hw.count(), total=hw.sum("v")),
    "by element": lambda w: w.panes("discarding").agg(n=hw.count()),
    "process": lambda w: w.process(Collect(), "n long"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_change_costs_the_same_beside_many_open_windows(step):
    sizes = {}
    for others in (10, 1000):
        harness = hw.testing.Harness(lambda s: STEPS[step](s.key_by("k").window(hw.tumbling("1 s"))), schema=SCHEMA)
        for other in range(others):
            harness.push({"k": "a", "v": 1}, at=100_000 + 1000 * other)
        host = harness._cluster.hosts[1, 0]
        store = harness._cluster.stores[1, 0]
        harness.push({"k": "a", "v": 1}, at=50)
        assert host.sequence > others
        sizes[others] = len(store.read(store.head().sequence))
    assert abs(sizes[10] - sizes[1000]) < 64  # numbers of more digits


def test_a_window_that_fires_leaves_the_others_alone():
    harness = hw.testing.Harness(lambda s: s.key_by("k").window(hw.tumbling("1 s")).agg(n=hw.count()), schema=SCHEMA)
    for at in range(0, 200_000, 1000):
        harness.push({"k": "a", "v": 1}, at=at)
    harness.watermark(999)
    assert [row.n for row in harness.take()] == [1]
    operator = harness._cluster.hosts[1, 0]._entries[0].operator
    assert len(operator.tables()["slices"]) == 199
