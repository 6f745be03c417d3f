from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.clock.timers import TimerQueue
from headwater.functions import EVENT
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.memory_backend import MEMORY
from headwater.state.spread import BY_KEY
from headwater.state.timers import HeapTimers


@pytest.fixture
def queue() -> TimerQueue:
    return TimerQueue("step", EVENT, pa.string(), BY_KEY, HeapTimers())


def fired(queue: TimerQueue, until: int) -> list[tuple[int, Any]]:
    return list(queue.due(until))


def test_timers_fire_in_the_order_of_time_then_of_registration(queue: TimerQueue) -> None:
    for at, key in [(20, "a"), (10, "z"), (10, "a"), (30, "a"), (-5, "m")]:
        queue.register(at, key)
    assert fired(queue, 20) == [(-5, "m"), (10, "z"), (10, "a"), (20, "a")]
    assert fired(queue, 29) == []
    assert fired(queue, 30) == [(30, "a")]
    assert len(queue) == 0


def test_a_timer_registered_twice_fires_once(queue: TimerQueue) -> None:
    queue.register(10, "a")
    queue.register(10, "a")
    assert fired(queue, 10) == [(10, "a")]
    queue.register(10, "a")
    assert fired(queue, 10) == [(10, "a")]


def test_a_deleted_timer_does_not_fire_and_can_be_set_again(queue: TimerQueue) -> None:
    queue.register(10, "a")
    queue.delete(10, "a")
    queue.delete(11, "a")
    assert fired(queue, 99) == []
    queue.register(10, "a")
    queue.register(10, "b")
    queue.delete(10, "a")
    queue.register(10, "a")
    assert fired(queue, 99) == [(10, "b"), (10, "a")]


def test_a_timer_set_while_timers_fire_takes_its_turn(queue: TimerQueue) -> None:
    queue.register(10, "a")
    queue.register(30, "a")
    seen = []
    for at, key in queue.due(40):
        seen.append(at)
        if at == 10:
            queue.register(20, key)
            queue.register(5, key)
            queue.register(50, key)
            queue.delete(30, key)
    assert seen == [10, 5, 20]
    assert fired(queue, 50) == [(50, "a")]


def test_keys_are_never_compared() -> None:
    queue = TimerQueue("step", EVENT, pa.struct([("a", pa.int64()), ("b", pa.string())]), BY_KEY, HeapTimers())
    for key in [(1, None), (1, "x"), None, (None, None)]:
        queue.register(10, key)
    assert [key for _, key in queue.due(10)] == [(1, None), (1, "x"), None, (None, None)]


def test_changes_bring_another_queue_to_the_same_state(queue: TimerQueue) -> None:
    other = TimerQueue("step", EVENT, pa.string(), BY_KEY, HeapTimers())
    queue.register(10, "a")
    queue.register(10, "b")
    queue.register(20, "a")
    for act in (lambda: None, lambda: queue.delete(10, "a"), lambda: queue.register(10, "a"), lambda: fired(queue, 10)):
        act()
        changes = queue.changes()
        assert changes is not None
        other.apply(changes)
        assert other.dump() == queue.dump()
    assert queue.changes() is None
    assert fired(other, 99) == fired(queue, 99)


def test_a_timer_that_came_and_went_is_not_told(queue: TimerQueue) -> None:
    queue.register(10, "a")
    queue.delete(10, "a")
    assert queue.changes() is None


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_timers_that_are_moved_again_and_again_leave_little_behind(backend: str, tmp_path: Path) -> None:
    opened = DiskBackend("step", tmp_path, Bound(1 << 20)) if backend == "disk" else MEMORY
    timers: Any = opened.timers(pa.int64())
    queue = TimerQueue("step", EVENT, pa.int64(), BY_KEY, timers)
    heap = (timers._near if backend == "disk" else timers)._heap
    largest = 0
    for epoch in range(50):
        for key in range(100):
            queue.delete(1_000 + epoch, key)
            queue.register(1_001 + epoch, key)
        largest = max(largest, len(heap))
    assert len(queue) == 100
    assert largest < 300  # of 5,000 that were set
    assert fired(queue, 1_050) == [(1_050, key) for key in range(100)]
    opened.close()
