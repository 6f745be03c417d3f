"""The garbage collector's part in a worker: state is out of its sight, and garbage still goes."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from headwater.task import garbage_collection


class _Ring:
    """Refers to itself, so that only the collector can remove it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _thawed():
    yield
    gc.unfreeze()


def test_what_a_task_keeps_is_not_walked_again():
    with garbage_collection.worker_task():
        kept = [[] for _ in range(1000)]
    assert gc.get_freeze_count() >= 1000
    assert gc.isenabled()
    assert len(kept) == 1000


def test_a_task_removes_its_own_garbage():
    with garbage_collection.worker_task():
        gone = weakref.ref(_Ring())
    assert gone() is None


def _set_aside() -> weakref.ref[_Ring]:
    """Garbage that a task has left behind when it was none yet."""
    with garbage_collection.worker_task():
        ring = _Ring()
    return weakref.ref(ring)


def test_garbage_that_was_set_aside_goes_when_a_worker_has_come_to_hold_more(monkeypatch):
    gone = _set_aside()
    monkeypatch.setattr(garbage_collection, "_tasks", garbage_collection._LOOK_EVERY - 1)
    monkeypatch.setattr(garbage_collection, "_blocks", sys.getallocatedblocks() // 2)
    with garbage_collection.worker_task():
        pass
    assert gone() is None


def test_a_worker_that_holds_as_much_as_before_is_not_looked_at_as_a_whole(monkeypatch):
    still_there = _set_aside()
    monkeypatch.setattr(garbage_collection, "_tasks", garbage_collection._LOOK_EVERY - 1)
    monkeypatch.setattr(garbage_collection, "_blocks", sys.getallocatedblocks())
    with garbage_collection.worker_task():
        pass
    assert still_there() is not None


def test_state_that_was_just_read_is_not_walked_at_all():
    with garbage_collection.worker_task():
        ring = _Ring()
        gone = weakref.ref(ring)
        garbage_collection.set_aside()
        del ring
    assert gone() is not None
