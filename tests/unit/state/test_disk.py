"""The disk backend tells and keeps what the memory backend does, holds a bounded part, and leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.clock.timers import TimerQueue
from headwater.data.rows import converter
from headwater.functions import EVENT
from headwater.scratch import Scratch
from headwater.state.backend import StateBackend
from headwater.state.disk import parts as disk_parts
from headwater.state.disk import timers as disk_timers
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.handles import maps
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.records import pack
from headwater.state.slices import Slice
from headwater.state.spread import BY_KEY
from headwater.state.table import StateTable

KEY = pa.struct([("a", pa.int64()), ("b", pa.string())])


class Longest(hw.AggregateFunction[str, list[str], int]):
    def create(self) -> list[str]:
        return [""]

    def add(self, accumulator: list[str], value: str) -> list[str]:
        return [max(accumulator[0], value, key=len)]

    def result(self, accumulator: list[str]) -> int:
        return len(accumulator[0])


def declarations() -> list[Any]:
    return [
        hw.ValueState("number", "bigint", default=7),
        hw.ValueState("nested", "struct<a:array<string>,b:decimal(9,3)>"),
        hw.ListState("listed", "string"),
        hw.MapState("mapped", "double", "array<int>"),
        hw.ReducingState("largest", "timestamp", reduce=max),
        hw.AggregatingState("longest", "array<string>", aggregate=Longest()),
    ]


class Copy:
    """The states and timers of a step on one backend."""

    def __init__(self, backend: StateBackend) -> None:
        self._cursor = Cursor()
        self._entries, handles = open_states(declarations(), "step", KEY, self._cursor, backend=backend)
        self.timers = TimerQueue("step", EVENT, KEY, BY_KEY, backend.timers(KEY))
        self.tables: dict[str, StateTable] = {**handles, "@timers": self.timers}

    def act(self, key: Any, state: str, method: str, *arguments: Any) -> Any:
        """Call a method of a state of a key; what it shows."""
        if state == "@timers":
            return (
                list(self.timers.due(*arguments)) if method == "due" else getattr(self.timers, method)(*arguments, key)
            )
        self._cursor.entry = self._entries.entry(key)
        if method == "walk":
            return list(islice(self.tables[state], *arguments))  # type: ignore[call-overload]
        return getattr(self.tables[state], method)(*arguments)

    def keys(self, state: str) -> list[Any]:
        return [entry[0] for entry in self.tables[state].entries_by_key()]  # type: ignore[attr-defined]

    def changes(self) -> bytes:
        found = {name: table.changes() for name, table in self.tables.items()}
        return pack({}, [("step", name, changes) for name, changes in found.items() if changes is not None])

    def dump(self) -> bytes:
        for table in self.tables.values():
            table.forget_changes()
        return pack({}, [("step", name, table.dump()) for name, table in self.tables.items()])

    def parts(self) -> list[bytes]:
        """What is there, as the parts of a base."""
        return [pack({}, sections) for sections in self._parts()]

    def _parts(self) -> Iterator[list[Any]]:
        for table in self.tables.values():
            table.forget_changes()
        for part in (Slice(0, 1, 8), Slice(1, 3, 8), Slice(3, 8, 8)):
            yield [("step", name, table.dump_slice(part)) for name, table in self.tables.items() if part.cuts(table)]

    def take_over(self, other: Copy, *, in_parts: bool) -> None:
        """Become what another copy is."""
        for name, table in self.tables.items():
            table.clear_all()
            if not in_parts:
                table.apply(other.tables[name].dump())
        for _, name, rows in chain.from_iterable(other._parts() if in_parts else ()):
            self.tables[name].load(rows)  # type: ignore[attr-defined]
        self.timers.next_registration = other.timers.next_registration


@contextmanager
def on_disk(folder: Path, *, held_bytes: int, held_timers: int) -> Iterator[DiskBackend]:
    with pytest.MonkeyPatch.context() as patch:
        bound = Bound(1 << 20)
        patch.setattr(bound, "ENTRIES", held_bytes / bound.size_bytes)
        patch.setattr(disk_timers.DiskTimers, "SHARE", held_timers * disk_timers._TIMER_BYTES / bound.size_bytes)
        patch.setattr(disk_timers, "_PAGE", 2)
        patch.setattr(disk_parts, "_FIRST_PAGE", 1)
        patch.setattr(disk_parts, "_LONG", 1)
        patch.setattr(maps, "_COPIED", 0)
        backend = DiskBackend("step", folder, bound)
        yield backend
        backend.close()


KEYS = st.sampled_from(
    [key and converter(KEY)(key) for key in [(1, "x"), (1, None), (None, "y"), None, (-5, ""), (2, "x\0")]]
)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
INTS = st.lists(st.none() | st.integers(-3, 3), max_size=2)
NESTED = st.fixed_dictionaries(
    {"a": st.none() | st.lists(st.none() | TEXT, max_size=2), "b": st.none() | st.integers(-9, 9)}
)
TIMES = st.integers(-20, 20)
OPERATIONS = st.one_of(
    st.tuples(st.just("number"), st.just("set"), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just("nested"), st.just("set"), st.none() | NESTED),
    st.tuples(st.just("listed"), st.just("add"), TEXT),
    st.tuples(st.just("listed"), st.sampled_from(["add_all", "update"]), st.lists(TEXT, max_size=3)),
    st.tuples(st.just("mapped"), st.just("put"), FLOATS, st.none() | INTS),
    st.tuples(st.just("mapped"), st.sampled_from(["remove", "get", "contains"]), FLOATS),
    st.tuples(st.just("mapped"), st.sampled_from(["items", "keys"])),
    st.tuples(st.just("mapped"), st.just("walk"), st.integers(1, 3)),
    st.tuples(st.just("listed"), st.sampled_from(["first", "last"])),
    st.tuples(st.just("largest"), st.just("add"), st.datetimes(timezones=st.just(dt.UTC))),
    st.tuples(st.just("longest"), st.just("add"), TEXT),
    st.tuples(st.sampled_from(["number", "nested", "listed", "largest", "longest"]), st.just("get")),
    st.tuples(st.sampled_from(["number", "nested", "listed", "mapped", "largest", "longest"]), st.just("clear")),
    st.tuples(st.just("@timers"), st.sampled_from(["register", "delete"]), TIMES),
    st.tuples(st.just("@timers"), st.just("due"), TIMES),
)
WHOLE = st.sampled_from(["delta", "base", "parts", "rebuild", "rebuild in parts", "keys"])
STEPS = st.lists(st.tuples(KEYS, OPERATIONS) | WHOLE, max_size=40)


@examples(150)
@given(steps=STEPS, held_bytes=st.sampled_from([0, 2_000, 1 << 20]), held_timers=st.sampled_from([1, 3, 1000]))
def test_both_backends_show_tell_and_dump_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any], held_bytes: int, held_timers: int
) -> None:
    folder = tmp_path_factory.mktemp("disk")
    with on_disk(folder, held_bytes=held_bytes, held_timers=held_timers) as backend:
        memory, stored = Copy(MEMORY), Copy(backend)
        for step in steps:
            if step == "delta":
                assert stored.changes() == memory.changes()
            elif step == "base":
                assert stored.dump() == memory.dump()
            elif step == "parts":
                assert stored.parts() == memory.parts()
            elif step == "keys":
                assert [stored.keys(name) for name in ("listed", "number")] == [
                    memory.keys(name) for name in ("listed", "number")
                ]
            elif step in ("rebuild", "rebuild in parts"):
                assert stored.dump() == memory.dump()
                rebuilt, moved = Copy(MEMORY), Copy(backend)
                for one, other in ((rebuilt, stored), (moved, memory)):
                    one.take_over(other, in_parts=step == "rebuild in parts")
                memory, stored = rebuilt, moved
            else:
                key, (state, method, *arguments) = step
                told = stored.act(key, state, method, *arguments)
                assert repr(told) == repr(memory.act(key, state, method, *arguments))
        assert stored.changes() == memory.changes()
        assert stored.dump() == memory.dump()
        sizes = [{name: len(table) for name, table in copy.tables.items()} for copy in (stored, memory)]
        assert sizes[0] == sizes[1]
    assert list(folder.iterdir()) == []


def opened(backend: DiskBackend, declaration: Any) -> tuple[Any, Any, Cursor]:
    cursor = Cursor()
    entries, handles = open_states([declaration], "step", pa.int64(), cursor, backend=backend)
    return entries, handles[declaration.name], cursor


def test_what_is_in_memory_is_bounded_by_what_an_epoch_changes(tmp_path: Path) -> None:
    with on_disk(tmp_path, held_bytes=100_000, held_timers=100) as backend:
        entries, state, cursor = opened(backend, hw.ValueState("it", "string"))
        for epoch in range(20):
            for key in range(epoch * 500, epoch * 500 + 500):
                cursor.entry = entries.entry(key)
                state.set(f"value {key}")
            assert len(entries.entries) <= 1000
            assert len(state.changes()) == 500
        for key in range(10_000):
            cursor.entry = entries.entry(key)
            assert state.get() == f"value {key}"
            assert len(entries.entries) <= 350
        assert len(state) == 10_000
        assert state.dump()["key"].to_pylist() == list(range(10_000))


def test_all_tables_of_a_worker_share_a_bound_and_the_largest_lets_go_first(tmp_path: Path) -> None:
    with on_disk(tmp_path, held_bytes=300_000, held_timers=1) as backend:
        small, large = opened(backend, hw.ValueState("small", "int")), opened(backend, hw.ValueState("large", "int"))
        for (entries, state, cursor), keys in ((small, 100), (large, 5_000)):
            for start in range(0, keys, 100):
                for key in entries.fetch(range(start, start + 100)):
                    cursor.entry = entries.entry(key)
                    state.set(key)
                state.forget_changes()
        assert len(small[0].entries) == 100
        assert small[0].held_bytes + large[0].held_bytes <= 300_000
        assert (len(small[1]), len(large[1])) == (100, 5_000)


def test_keys_are_fetched_at_once_and_a_state_is_loaded_without_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_disk(tmp_path, held_bytes=20_000, held_timers=1) as backend:
        entries, state, cursor = opened(backend, hw.ValueState("it", "string"))
        read: list[int] = []
        get_all = entries.store.get_all
        monkeypatch.setattr(entries.store, "get_all", lambda keys: read.append(len(keys)) or get_all(keys))
        rows = [(key, str(key)) for key in range(150_000)]
        state.apply(state._layout.puts(rows))
        assert read == []
        assert len(state) == 150_000
        keys = [*range(0, 150_000, 1_000), 7, 200_000]
        for key in entries.fetch(keys):
            cursor.entry = entries.entry(key)
            assert state.get() == (None if key == 200_000 else str(key))
        assert read == [len(keys)]


def test_an_element_of_a_long_map_or_list_is_reached_without_the_others(tmp_path: Path) -> None:
    with on_disk(tmp_path, held_bytes=1 << 20, held_timers=1) as backend:
        entries, mapped, cursor = opened(backend, hw.MapState("mapped", "int", "string"))
        cursor.entry = entries.entry(1)
        mapped.put_all({number: str(number) for number in range(5_000)})
        mapped.changes()
        entries.let_go(entries.held_bytes)
        cursor.entry = entries.entry(1)
        mapped.put(7, "seven")
        assert (mapped.get(4_000), mapped.contains(9_999)) == ("4000", False)
        assert len(cursor.entry[1]._known) == 3
        assert mapped.changes().num_rows == 1
        assert [value for _, value in mapped.items()][6:9] == ["6", "seven", "8"]

        entries, listed, cursor = opened(backend, hw.ListState("listed", "string"))
        cursor.entry = entries.entry(1)
        listed.add_all(map(str, range(5_000)))
        listed.changes()
        entries.let_go(entries.held_bytes)
        cursor.entry = entries.entry(1)
        listed.add("more")
        assert len(cursor.entry[1]._items) == 1
        assert listed.changes()["index"].to_pylist() == [5_000]
        assert listed.get()[-2:] == ["4999", "more"]


def test_many_timers_are_not_in_memory(tmp_path: Path) -> None:
    with on_disk(tmp_path, held_bytes=1, held_timers=100) as backend:
        timers = backend.timers(pa.int64())
        queue = TimerQueue("step", EVENT, pa.int64(), BY_KEY, timers)
        for key in range(5_000):
            queue.register(key * 7919 % 5_000, key)
            assert len(timers._near) <= 100
        assert len(queue) == 5_000
        fired = [timestamp for timestamp, _ in queue.due(2_499)]
        assert fired == list(range(2_500))
        assert len(queue) == 2_500
        assert queue.dump()["registration"].to_pylist() == [k for k in range(5_000) if k * 7919 % 5_000 >= 2_500]


def test_state_that_fits_memory_opens_no_database(tmp_path: Path) -> None:
    backend = DiskBackend("step", tmp_path, Bound(1 << 20))
    entries, state, cursor = opened(backend, hw.ValueState("it", "int"))
    cursor.entry = entries.entry(1)
    state.set(5)
    assert state.changes() is not None
    assert state.dump()["value"].to_pylist() == [5]
    assert list(tmp_path.iterdir()) == []
    backend.close()


def test_a_value_too_large_for_its_type_is_refused_as_in_memory(tmp_path: Path) -> None:
    with on_disk(tmp_path, held_bytes=0, held_timers=1) as backend:
        entries, state, cursor = opened(backend, hw.ReducingState("it", "bigint", reduce=max))
        cursor.entry = entries.entry(1)
        state.add(1 << 63)
        with pytest.raises(hw.RowError, match=r"state 'it'.*9223372036854775808 does not fit int64"):
            state.forget_changes()  # from then on it may be on disk


def test_a_folder_is_removed_when_it_is_closed_and_at_the_end_of_the_process(tmp_path: Path) -> None:
    closed = Scratch("state", tmp_path)
    assert closed.path.is_dir()
    assert str(os.getpid()) in closed.path.name
    closed.close()
    assert list(tmp_path.iterdir()) == []
    run(tmp_path, "Scratch('state', folder)")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    living = Scratch("state", tmp_path)
    run(tmp_path, "Scratch('state', folder); os.kill(os.getpid(), 9)", returncode=-9)
    assert len(list(tmp_path.iterdir())) == 2
    mine = Scratch("state", tmp_path)
    assert set(tmp_path.iterdir()) == {living.path, mine.path}
    living.close()
    mine.close()


def test_what_was_written_to_the_folder_of_a_process_after_its_end_is_removed_by_the_next_one(tmp_path: Path) -> None:
    run(tmp_path, "late = Scratch('state', folder); late.close(); (late.path / 'late').mkdir(parents=True)")
    run(tmp_path, "(folder / f'{Scratch(chr(120), folder).path.name}-other').mkdir()")  # not one of this kind
    living = Scratch("state", tmp_path)
    living.close()
    (living.path / "late").mkdir(parents=True)
    mine = Scratch("state", tmp_path)
    assert {path.name for path in tmp_path.glob("headwater-state-*")} == {living.path.name, mine.path.name}
    assert len(list(tmp_path.glob("headwater-x-*"))) == 1
    mine.close()


def test_a_forked_process_leaves_the_folder_of_its_parent_alone(tmp_path: Path) -> None:
    run(tmp_path, "kept = Scratch('state', folder); os.fork() or sys.exit(); os.wait(); assert kept.path.is_dir()")


def test_a_full_disk_is_told_with_the_folder_and_the_way_out(tmp_path: Path) -> None:
    code = """
        import resource
        from headwater.errors import StateError
        from headwater.state.disk.bound import Bound
        from headwater.state.disk.rocks import RocksStore
        store = RocksStore("totals", folder, Bound(64 << 20))
        batch = store.batch()
        batch.put(b"key", bytes(1 << 20))
        store.write(batch)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as a disk that has no room left
        try:
            for number in range(400):
                batch = store.batch()
                batch.put(str(number).encode(), os.urandom(1 << 20))
                store.write(batch)
        except StateError as error:
            print(error)
    """
    told = run(tmp_path, textwrap.dedent(code)).stdout
    assert f"step 'totals' cannot keep its state in {tmp_path}/headwater-state-" in told
    assert "File too large" in told
    assert "make room there" in told
    assert "state_backend='memory'" in told


def run(folder: Path, code: str, returncode: int = 0) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    imports = "import os, sys\nfrom pathlib import Path\nfrom headwater.scratch import Scratch\n"
    top = f"{imports}folder = Path({str(folder)!r})\n"
    done = subprocess.run([sys.executable, "-c", top + code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == returncode, done.stderr
    return done
