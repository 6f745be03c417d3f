from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.errors import ChangelogError
from headwater.state import changelog
from headwater.state.changelog import Head, MemoryRecordStore, append, catch_up, pieces
from headwater.state.records import pack, sizes, unpack


def base(number: int) -> bytes:
    return pack({"base": number}, [])


def delta(number: int) -> bytes:
    return pack({"delta": number}, [])


class Total:
    """A working copy that is one number; a delta adds to it."""

    def __init__(self) -> None:
        self.sequence, self.token = 0, None
        self.number = self.told = 0
        self.applied: list[bytes] = []

    def add(self, n: int) -> None:
        self.number += n

    def reset(self) -> None:
        self.number = self.told = 0
        self.applied = []

    def apply(self, record: bytes) -> None:
        meta, _ = unpack(record)
        self.number = meta["base"] if "base" in meta else self.number + meta["delta"]
        self.told = self.number
        self.applied.append(record)

    def delta(self, parts: None = None) -> bytes:
        assert parts is None, "it is one part"
        record = delta(self.number - self.told)
        self.told = self.number
        return record

    def base(self) -> bytes:
        self.told = self.number
        return base(self.number)

    def forget_changes(self) -> None:
        """The next base has them."""

    def base_parts(self) -> int:
        return 1


def epoch(copy: Any, store: MemoryRecordStore, n: int, token: str) -> None:
    head = catch_up(copy, store, "here")
    assert head == store.head()
    copy.token = None
    copy.add(n)
    append(copy, store, head, token)


@pytest.fixture
def store() -> MemoryRecordStore:
    """Five epochs: a base and four deltas."""
    store = MemoryRecordStore()
    copy = Total()
    for n in range(1, 6):
        epoch(copy, store, n, f"t{n}")
    return store


def test_a_current_copy_reads_nothing(store: MemoryRecordStore) -> None:
    copy = Total()
    copy.sequence, copy.token, copy.number = 5, "t5", 15  # type: ignore[assignment]
    catch_up(copy, store, "here")
    assert (copy.number, copy.applied) == (15, [])


def test_a_copy_behind_reads_just_what_it_lacks(store: MemoryRecordStore) -> None:
    copy = Total()
    copy.sequence, copy.token, copy.number = 3, "t3", 6  # type: ignore[assignment]
    catch_up(copy, store, "here")
    assert (copy.number, copy.applied) == (15, [delta(4), delta(5)])
    assert (copy.sequence, copy.token) == (5, "t5")


@pytest.mark.parametrize(("sequence", "token"), [(3, "other"), (5, "other"), (6, "t6"), (9, "t5x"), (0, None)])
def test_a_copy_of_unknown_token_is_rebuilt(store: MemoryRecordStore, sequence: int, token: str | None) -> None:
    copy = Total()
    copy.sequence, copy.token, copy.number = sequence, token, 999  # type: ignore[assignment]
    catch_up(copy, store, "here")
    assert (copy.number, len(copy.applied)) == (15, 5)


def test_a_copy_whose_records_are_compacted_away_is_rebuilt(
    store: MemoryRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = Total()
    behind.sequence, behind.token, behind.number = 3, "t3", 6  # type: ignore[assignment]
    monkeypatch.setattr(changelog, "is_compaction_due", lambda head: True)
    epoch(Total(), store, 6, "t6")
    assert [store.read(n) for n in range(1, 7)] == [None] * 5 + [base(21)]
    catch_up(behind, store, "here")
    assert (behind.number, behind.applied) == (21, [base(21)])


def test_a_copy_without_anything_committed_starts_anew() -> None:
    copy = Total()
    copy.sequence, copy.token, copy.number = 1, "of an attempt that failed", 5  # type: ignore[assignment]
    catch_up(copy, MemoryRecordStore(), "here")
    assert (copy.number, copy.sequence, copy.token) == (0, 0, None)


def test_a_missing_record_is_an_error_that_says_which(store: MemoryRecordStore) -> None:
    store.remove(4)
    copy = Total()
    with pytest.raises(ChangelogError, match="stored state of level 1, subtask 0 lacks sequence 4"):
        catch_up(copy, store, "level 1, subtask 0")
    assert copy.token is None


def test_the_first_record_is_a_base(store: MemoryRecordStore) -> None:
    assert store.read(1) == base(1)
    assert store.head() == Head(5, "t5", 1, len(base(1)), 4 * len(delta(2)))


@pytest.mark.parametrize(
    ("head", "due"),
    [
        (Head(2, "t", 1, 10, 100), False),
        (Head(2, "t", 1, 10, 1 << 20), True),
        (Head(2, "t", 1, 1 << 20, 1 << 20), False),
        (Head(2, "t", 1, 1 << 20, 3 << 20), True),
        (Head(4096, "t", 1, 1 << 30, 0), False),
        (Head(4097, "t", 1, 1 << 30, 0), True),
    ],
)
def test_compaction_is_due_when_reading_the_deltas_costs_more_than_the_base(head: Head, due: bool) -> None:
    assert changelog.is_compaction_due(head) is due


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.booleans()), min_size=1, max_size=20))
def test_any_turn_of_workers_and_compactions_keeps_the_total(turns: list[tuple[int, int, bool]]) -> None:
    store, copies = MemoryRecordStore(), [Total(), Total(), Total()]
    for number, (worker, n, compact) in enumerate(turns):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(changelog, "is_compaction_due", lambda head, due=compact: due)
            epoch(copies[worker], store, n, f"t{number}")
        assert copies[worker].number == sum(n for _, n, _ in turns[: number + 1])


def test_records_before_a_base_go_a_few_an_epoch_and_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the next base comes before they are all gone."""
    store, copy, removed = MemoryRecordStore(), Total(), []
    for number in range(250):
        is_due = number in (100, 103, 104, 190)
        monkeypatch.setattr(changelog, "is_compaction_due", lambda head, due=is_due: due)
        before = set(store._records)
        epoch(copy, store, number, f"t{number}")
        removed.append(len(before - set(store._records)))
        rebuilt = Total()
        catch_up(rebuilt, store, "here")
        assert rebuilt.number == copy.number
        assert len(rebuilt.applied) <= number + 1 - max(at for at in (0, 100, 103, 104, 190) if at <= number)
        head = store.head()
        assert head is not None
        assert sorted(store._records) == list(range(head.oldest or head.base, head.sequence + 1))
    assert max(removed) == changelog._REMOVED_AT_ONCE
    assert (head.base, head.sequence, len(store._records), head.oldest) == (191, 250, 60, 0)


def test_many_records_are_enough_for_a_base_and_do_not_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "COMPACT_AFTER_RECORDS", 40)
    store, copy, removed, bases = MemoryRecordStore(), Total(), [], set()
    for number in range(150):
        before = set(store._records)
        epoch(copy, store, number, f"t{number}")
        removed.append(len(before - set(store._records)))
        head = store.head()
        assert head is not None
        bases.add(head.base)
    assert sorted(bases) == [1, 42, 83, 124]
    assert max(removed) == changelog._REMOVED_AT_ONCE
    assert len(store._records) <= 41 + 1


def test_what_an_epoch_wrote_and_what_a_rebuild_reads_is_told(store: MemoryRecordStore) -> None:
    copy = Total()
    head = catch_up(copy, store, "here")
    assert head is not None
    copy.add(100)
    written = append(copy, store, head, "t6")
    assert written.added_bytes == {}
    assert written.stored_bytes == head.base_bytes + head.delta_bytes + len(delta(100))


def test_a_damaged_record_is_named_with_its_place(store: MemoryRecordStore) -> None:
    store.write(1, "t1", base(1)[:-1])
    with pytest.raises(ChangelogError, match=r"^level 1, subtask 0, record 1: stored state cannot be read: .*rewind"):
        catch_up(Total(), store, "level 1, subtask 0")


def test_a_record_comes_back() -> None:
    tables = [("one", "a", pa.table({"x": [1, None]})), ("two", "@b", pa.table({"y": [["a"], []]}))]
    record = pack({"one": {"n": [1, 2]}}, tables)
    meta, sections = unpack(record)
    assert meta == {"one": {"n": [1, 2]}}
    assert list(sections) == tables
    assert pack({"one": {"n": [1, 2]}}, tables) == record


def test_a_record_tells_the_bytes_of_each_state() -> None:
    tables = [("one", "a", pa.table({"x": [1]})), ("one", "b", pa.table({"x": list(range(999))}))]
    found = sizes(pack({}, tables))
    assert (set(found), set(found["one"])) == ({"one"}, {"a", "b"})
    assert 0 < found["one"]["a"] < found["one"]["b"] < len(pack({}, tables))


def test_a_record_without_sections_is_small() -> None:
    record = pack({}, [])
    assert len(record) < 50
    assert [unpack(record)[0], *unpack(record)[1]] == [{}]


@pytest.mark.parametrize("damage", [b"", b"HWCL\x02....", b"HWCL\x01", b"HWCL\x01\x05\x00\x00\x00{", b"garbage"])
def test_bytes_that_are_no_record_are_refused(damage: bytes) -> None:
    with pytest.raises(ChangelogError, match="the checkpoint is damaged or was written by another version"):
        unpack(damage)


@pytest.mark.parametrize("start", [5, 40, -60, -9])
def test_a_cut_or_changed_record_is_refused(start: int) -> None:
    record = pack({}, [("one", "a", pa.table({"x": list(range(100))}))])
    for damaged in (record[:start], record[:start] + bytes([record[start] ^ 1]) + record[start + 1 :]):
        with pytest.raises(ChangelogError, match="the checkpoint is damaged"):
            unpack(damaged)


def test_a_record_from_before_there_were_checksums_is_refused_where_it_is_cut() -> None:
    record = pack({}, [("one", "a", pa.table({"x": list(range(100))}))])
    unchecked = b"HWCL\x01" + record[9:]
    assert list(unpack(unchecked)[1]) == list(unpack(record)[1])
    with pytest.raises(ChangelogError, match="one, state a"):
        list(unpack(unchecked[:-60])[1])


def test_a_record_is_cut_into_pieces() -> None:
    record = bytes(changelog.MAX_PIECE_BYTES) + b"x"
    assert [len(piece) for piece in pieces(record)] == [changelog.MAX_PIECE_BYTES, 1]
    assert b"".join(pieces(record)) == record
    assert pieces(b"") == [b""]
