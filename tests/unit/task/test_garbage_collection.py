"""The garbage collector's part in a worker: state is out of its sight, and garbage still goes."""

from __future__ import annotations

import gc
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


def test_garbage_that_was_set_aside_goes_at_a_full_look(monkeypatch):
    with garbage_collection.worker_task():
        ring = _Ring()
    gone = weakref.ref(ring)
    del ring
    monkeypatch.setattr(garbage_collection, "_tasks", 0)
    with garbage_collection.worker_task():
        pass
    assert gone() is None
